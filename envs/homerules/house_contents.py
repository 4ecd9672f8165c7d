"""Contents of HomeRules: houses, places, objects, families of tasks, and their numbers at each level."""

from collections.abc import Mapping
from dataclasses import dataclass


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
