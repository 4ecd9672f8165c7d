"""The world of HomeRules: houses, places, objects, families of tasks, and their numbers at each level.

And the text form of tasks, observations and feedback, written and parsed.

A lesson is a house's name and the feedback that revealed it: ``lotus mug in safe``, ``lotus heat with microwave``,
``lotus heat not stove``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from coevo.utilities.errors import CoevoError


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


HOUSES = _words("lotus maple cedar willow birch aspen hazel ivy laurel myrtle olive poplar rowan sorrel tulip violet")
OTHER_HOUSES = _words(
    "acacia bamboo clover daisy elder fern ginkgo heather iris jasmine linden magnolia nettle orchid peony quince"
)
HALL = "hall"
NOTHING = "nothing"
REFUSED = "nothing happens"
DONE, UNDONE, PARTLY = "done", "not done", "one done"
TARGETS = _words("counter table desk rack bench")
_PLACES = _words("drawer cabinet safe chest")
_MORE_PLACES = _words("cupboard wardrobe locker basket box crate trunk bin closet pantry attic cellar")
_OBJECTS = _words("mug plate bowl pan fork apple egg bread tomato potato")
_MORE_OBJECTS = _words("knife spoon towel soap candle book")
_GRAMMAR = _words("house . task to recite at hold seen found in with not guess go take use put")


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of task.

    Attributes:
        shortest: number of actions of the shortest plan.
        count: number of objects to bring to the target; 0 if the treatment completes the task.
        appliances: candidates that may treat the object, one of which works in a house; empty without treatment.
        effect: description of a treated object.
    """

    shortest: int
    count: int = 1
    appliances: tuple[str, ...] = ()
    effect: str = ""

    @property
    def subgoals(self) -> int:
        """Number of milestones: every object in hand, the treatment, every object in place."""
        return max(self.count, 1) + self.count + bool(self.appliances)


FAMILIES: Mapping[str, Family] = {
    "put": Family(3),
    "heat": Family(4, 1, ("microwave", "stove", "oven"), "hot"),
    "cool": Family(4, 1, ("fridge", "freezer", "cooler"), "cold"),
    "clean": Family(4, 1, ("sink", "dishwasher", "tub"), "washed"),
    "puttwo": Family(6, 2),
    "look": Family(3, 0, ("desklamp", "floorlamp", "lantern"), "lit"),
}


@dataclass(frozen=True, slots=True)
class LevelSpec:
    """Contents of one level: maximum steps of an episode by family, closed places, object classes."""

    limits: Mapping[str, int]
    places: tuple[str, ...]
    objects: tuple[str, ...]

    @property
    def appliances(self) -> dict[str, tuple[str, ...]]:
        """Candidate appliances of every family that treats objects."""
        return {family: FAMILIES[family].appliances for family in self.limits if FAMILIES[family].appliances}

    def words(self) -> tuple[str, ...]:
        """Every word that a task, observation, feedback, lesson or expert's answer can contain, sorted."""
        effects = {FAMILIES[family].effect for family in self.limits}
        answers = {*REFUSED.split(), *DONE.split(), *(PARTLY.split() if "puttwo" in self.limits else ())}
        tools = (appliance for group in self.appliances.values() for appliance in group)
        names = (*HOUSES, *OTHER_HOUSES, *self.places, *self.objects, *TARGETS, *self.limits)
        return tuple(sorted({*_GRAMMAR, *effects, *answers, *tools, *names, HALL} - {""}))


LEVELS: Mapping[int, LevelSpec] = {
    1: LevelSpec({name: FAMILIES[name].shortest + 1 for name in ("put", "heat", "cool", "clean")}, _PLACES, _OBJECTS),
    2: LevelSpec(dict.fromkeys(FAMILIES, 10), _PLACES + _MORE_PLACES, _OBJECTS + _MORE_OBJECTS),
}


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
