"""Text form of tasks, observations and feedback of HomeRules, written and parsed.

A lesson is a house's name and the feedback that revealed it: ``lotus mug in safe``, ``lotus heat with microwave``,
``lotus heat not stove``.
"""

from typing import NamedTuple

from coevo.envs.homerules.house_contents import FAMILIES, NOTHING
from coevo.utilities.errors import CoevoError


class Goal(NamedTuple):
    """Goal of a task, as far as its instruction states it; ``target`` is empty if no object is placed."""

    house: str
    family: str
    object: str
    target: str

    @property
    def subjects(self) -> tuple[str, ...]:
        """Words whose facts help: the object, and the family if an appliance decides."""
        return (self.object, self.family) if FAMILIES[self.family].appliances else (self.object,)

    def instruction(self) -> str:
        """Task in words."""
        target = f" to {self.target}" if self.target else ""
        return f"house {self.house} . task {self.family} {self.object}{target}"


class HouseView(NamedTuple):
    """Content of an observation; ``held``, ``effect`` and ``found`` are empty if they do not apply."""

    at: str
    held: str
    effect: str
    seen: tuple[str, ...]
    found: str

    def text(self) -> str:
        """Observation in words."""
        held = f"{self.held} {self.effect}".strip() or NOTHING
        found = f" . found {self.found}" if self.found else ""
        return f"at {self.at} hold {held} . seen {' '.join(self.seen) or NOTHING}{found}"


def read_instruction(text: str) -> Goal:
    """Inverse of ``Goal.instruction``. Raises ``CoevoError`` if the text is not a task."""
    match text.split():
        case ["house", house, ".", "task", family, thing, "to", target]:
            return Goal(house, family, thing, target)
        case ["house", house, ".", "task", family, thing]:
            return Goal(house, family, thing, "")
    raise CoevoError(f"instruction {text!r} is not a task of homerules: give the expert a moment of this environment")


def read_observation(text: str) -> HouseView:
    """Inverse of ``HouseView.text``. Raises ``CoevoError`` if the text is not an observation."""
    head, _, rest = text.partition(" . seen ")
    seen, _, found = rest.partition(" . found ")
    match head.split():
        case ["at", at, "hold", held, *effect] if rest:
            held = "" if held == NOTHING else held
            places = () if seen == NOTHING else tuple(seen.split())
            return HouseView(at, held, " ".join(effect), places, found)
    raise CoevoError(f"observation {text!r} is not of homerules: give the expert a moment of this environment")


def inside(thing: str, place: str) -> str:
    """Feedback that reveals the place of a class of objects."""
    return f"{thing} in {place}"


def works(family: str, appliance: str) -> str:
    """Feedback of the appliance that works."""
    return f"{family} with {appliance}"


def fails(family: str, appliance: str) -> str:
    """Feedback of an appliance that spoils the task."""
    return f"{family} not {appliance}"
