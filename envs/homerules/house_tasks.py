"""Tasks for training, held-out tasks for the panels, and the guide to their actions.

The guide says what can be tried, and nothing that only outcomes reveal.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import cycle, product, starmap
from typing import NamedTuple

from coevo.configs.env import HomeRulesConfig
from coevo.envs.base import Guide
from coevo.envs.homerules.house_conventions import Facts, changes_before, facts
from coevo.envs.homerules.house_world import FAMILIES, HOUSES, LEVELS, TARGETS, Family, Goal
from coevo.records.draws import Key, generator, key, seed_of
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError


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


NAME = "homerules"
_ONE_IN = 4
"""Inverse share of held-out combinations of house, family, object and target."""


def task_of(goal: Goal, level: int, world: str, split: str, changes: int = 0) -> Task:
    """Task of a goal in a world whose house has changed so often."""
    data = {"level": level, "world": world, **goal._asdict()} | ({"changes": changes} if changes else {})
    return Task(NAME, goal.family, goal.instruction(), goal.house, split, data)


def goal_of(task: Task) -> Goal:
    """Goal of a task. Raises ``CoevoError`` for a task of another environment."""
    if task.env != NAME:
        raise CoevoError(f"task {task.id} belongs to environment {task.env!r}, not {NAME!r}: start it there")
    return Goal(*(task.data[field] for field in Goal._fields))


def facts_of(task: Task) -> Facts:
    """Conventions of the house of a task."""
    return facts(task.data["level"], task.data["world"], task.data["house"], task.data.get("changes", 0))


def changes_at(config: HomeRulesConfig, iteration: int) -> Mapping[str, int]:
    """Changes of each house of the training world before an iteration; empty if it does not drift."""
    return {} if config.drift is None else changes_before(iteration, config.drift, HOUSES[: config.houses])


def words(level: int) -> tuple[str, ...]:
    """Every word of a level."""
    return LEVELS[level].words()


def guide(task: Task) -> Guide:
    """Actions of a task."""
    return guide_of(goal_of(task), task.data["level"])


def held_out(goal: Goal, level: int) -> bool:
    """True if a combination belongs to the panels: a hash of it alone decides, in every world alike."""
    return seed_of(key(NAME, "split", level, *goal)) % _ONE_IN == 0


def draw_goal(level: int, houses: tuple[str, ...], draw: Key) -> Goal:
    """Draw any goal: family, house, object and target each uniform."""
    rng = generator(draw)
    families, objects = tuple(LEVELS[level].limits), LEVELS[level].objects
    family = families[rng.integers(len(families))]
    targets = _targets(family)
    house, thing = houses[rng.integers(len(houses))], objects[rng.integers(len(objects))]
    return Goal(house, family, thing, targets[rng.integers(len(targets))])


def sample(config: HomeRulesConfig, changes: Mapping[str, int], count: int, draw: Key) -> list[Task]:
    """Draw ``count`` training tasks with equally likely families; none repeats before its family is used up.

    ``changes`` has the number of changes of each house that has changed.
    """
    rng, level = generator(draw), config.level
    families = list(pools(level, HOUSES[: config.houses]).training.values())
    shuffled = [cycle([pool[index] for index in rng.permutation(len(pool))]) for pool in families]
    goals = [next(shuffled[family]) for family in rng.integers(len(families), size=count)]
    return [task_of(goal, level, f"train/{config.world}", "train", changes.get(goal.house, 0)) for goal in goals]


def renewed(config: HomeRulesConfig, changes: Mapping[str, int], task: Task) -> Task:
    """Training task with its house as it is after ``changes``; a task of another world or level stays as it is."""
    goal, level, world = goal_of(task), task.data["level"], f"train/{config.world}"
    if task.split != "train" or (level, task.data["world"]) != (config.level, world):
        return task
    return task_of(goal, level, world, "train", changes.get(goal.house, 0))


class Pools(NamedTuple):
    """Goals by family, those of the panels in a fixed random order."""

    training: dict[str, list[Goal]]
    held_out: dict[str, list[Goal]]


@lru_cache(maxsize=16)
def pools(level: int, houses: tuple[str, ...]) -> Pools:
    """Every goal of some houses, divided into training and held-out goals."""
    families, objects = LEVELS[level].limits, LEVELS[level].objects
    goals = {family: list(_goals(houses, family, objects)) for family in families}
    training = {family: [goal for goal in goals[family] if not held_out(goal, level)] for family in families}
    held = {family: [goal for goal in goals[family] if held_out(goal, level)] for family in families}
    for pool in held.values():
        pool.sort(key=lambda goal: seed_of(key(NAME, "order", level, *goal)))
    return Pools(training, held)


def _goals(houses: tuple[str, ...], family: str, objects: tuple[str, ...]) -> Iterator[Goal]:
    return starmap(Goal, product(houses, [family], objects, _targets(family)))


def _targets(family: str) -> tuple[str, ...]:
    return TARGETS if FAMILIES[family].count else ("",)
