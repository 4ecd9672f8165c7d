"""How tasks, observations and feedback of HomeRules are written and read.

A lesson is a house's name and the feedback that revealed it: ``lotus mug in safe``, ``lotus heat with microwave``,
``lotus heat not stove``.
"""

from typing import NamedTuple

from configs.errors import CoevoError
from envs.homerules.catalogue import FAMILIES, NOTHING


class Goal(NamedTuple):
    """What a task asks for, as far as its instruction says; ``target`` is empty where nothing is placed."""

    house: str
    family: str
    object: str
    target: str

    @property
    def subjects(self) -> tuple[str, ...]:
        """The words whose facts help: the object, and the family where an appliance decides."""
        return (self.object, self.family) if FAMILIES[self.family].appliances else (self.object,)

    def instruction(self) -> str:
        """The task in words."""
        target = f" to {self.target}" if self.target else ""
        return f"house {self.house} . task {self.family} {self.object}{target}"


class View(NamedTuple):
    """What an observation says; ``held``, ``effect`` and ``found`` are empty where there is nothing to say."""

    at: str
    held: str
    effect: str
    seen: tuple[str, ...]
    found: str

    def text(self) -> str:
        """The observation in words."""
        held = f"{self.held} {self.effect}".strip() or NOTHING
        found = f" . found {self.found}" if self.found else ""
        return f"at {self.at} hold {held} . seen {' '.join(self.seen) or NOTHING}{found}"


def read_instruction(text: str) -> Goal:
    """The inverse of ``Goal.instruction``. Raises ``CoevoError`` where the text is no task."""
    match text.split():
        case ["house", house, ".", "task", family, thing, "to", target]:
            return Goal(house, family, thing, target)
        case ["house", house, ".", "task", family, thing]:
            return Goal(house, family, thing, "")
    raise CoevoError(f"instruction {text!r} is no task of homerules: give the expert a moment of this environment")


def read_observation(text: str) -> View:
    """The inverse of ``View.text``. Raises ``CoevoError`` where the text is no observation."""
    head, _, rest = text.partition(" . seen ")
    seen, _, found = rest.partition(" . found ")
    match head.split():
        case ["at", at, "hold", held, *effect] if rest:
            held = "" if held == NOTHING else held
            places = () if seen == NOTHING else tuple(seen.split())
            return View(at, held, " ".join(effect), places, found)
    raise CoevoError(f"observation {text!r} is not of homerules: give the expert a moment of this environment")


def inside(thing: str, place: str) -> str:
    """The feedback that tells where a class of objects is kept."""
    return f"{thing} in {place}"


def works(family: str, appliance: str) -> str:
    """The feedback of the appliance that works."""
    return f"{family} with {appliance}"


def fails(family: str, appliance: str) -> str:
    """The feedback of an appliance that spoils the task."""
    return f"{family} not {appliance}"
