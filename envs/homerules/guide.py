"""Guide to the actions of a task; it says what can be tried, and nothing that only outcomes reveal."""

from functools import lru_cache

from coevo.envs.base import Guide
from coevo.envs.homerules.house_contents import FAMILIES, LEVELS, TARGETS, Family
from coevo.envs.homerules.house_language import Goal


def guide_of(goal: Goal, level: int) -> Guide:
    """Actions of a task: their form, their arguments in this house, and their conditions."""
    return _guide(goal.family, goal.object, level)


@lru_cache(maxsize=1024)
def _guide(name: str, thing: str, level: int) -> Guide:
    lines = {
        "go": f"go PLACE: go to a closed place and look into it. Places: {', '.join(LEVELS[level].places)}.",
        "take": f"take {thing}: take the {thing}, at the place where you found it.",
        **_treatment(FAMILIES[name], name, thing),
        **_target(FAMILIES[name], thing),
    }
    return Guide("\n".join(("An action is one of these lines, in exactly this form:", *lines.values())), tuple(lines))


def _treatment(family: Family, name: str, thing: str) -> dict[str, str]:
    if not family.appliances:
        return {}
    choices = ", ".join(family.appliances)
    use = f"use APPLIANCE: {name} the {thing} that you hold; the wrong appliance ends the task. Appliances: {choices}."
    return {"use": use}


def _target(family: Family, thing: str) -> dict[str, str]:
    return {"put": f"put TARGET: put down the {thing}. Targets: {', '.join(TARGETS)}."} if family.count else {}
