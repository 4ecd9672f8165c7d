"""The hidden conventions of a house: a pure function of level, world, the house's name and its number of changes.

Worlds are named ``<purpose>/<number>``, so that worlds of different purposes are never equal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from coevo.envs.homerules.house_world import LEVELS, fails, inside, works
from coevo.records.draws import Key, generator, key, seed_of


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of one house.

    Attributes:
        level: level that defines the places and appliances.
        house: its name.
        storage: the closed place of each object class.
        appliance: the appliance that works, by family.
    """

    level: int
    house: str
    storage: Mapping[str, str]
    appliance: Mapping[str, str]

    @property
    def subjects(self) -> tuple[str, ...]:
        """Subjects of all facts: object classes, then families."""
        return (*self.storage, *self.appliance)

    def lesson(self, subject: str) -> str:
        """Fact about an object class or a family, as a lesson."""
        if subject in self.storage:
            return f"{self.house} {inside(subject, self.storage[subject])}"
        return f"{self.house} {works(subject, self.appliance[subject])}"

    def warnings(self, family: str) -> list[str]:
        """Lessons about the appliances that do not work for a family."""
        candidates = LEVELS[self.level].appliances[family]
        return [f"{self.house} {fails(family, tool)}" for tool in candidates if tool != self.appliance[family]]

    def contrary(self, rng: np.random.Generator) -> "Facts":
        """Copy of the house with every fact replaced by one that is false here."""
        level = LEVELS[self.level]
        storage = {thing: _another(level.places, place, rng) for thing, place in self.storage.items()}
        tools = {name: _another(level.appliances[name], tool, rng) for name, tool in self.appliance.items()}
        return Facts(self.level, self.house, MappingProxyType(storage), MappingProxyType(tools))


def fresh(draw: Key) -> str:
    """Name of a world that is never used for training or evaluation."""
    return f"fresh/{seed_of(draw):016x}"


@lru_cache(maxsize=4096)
def facts(level: int, world: str, house: str, changes: int = 0) -> Facts:
    """Conventions of a house: each one uniform and independent of all others.

    Args:
        level: level of the world.
        world: name of the world.
        house: name of the house.
        changes: changes of the house so far; each replaces all of its facts by others.
    """
    found = _original(level, world, house)
    for number in range(1, changes + 1):
        found = found.contrary(generator(key("homerules", level, world, house, number)))
    return found


def _original(level: int, world: str, house: str) -> Facts:
    rng = generator(key("homerules", level, world, house))
    places, tools = LEVELS[level].places, LEVELS[level].appliances
    stored = rng.integers(len(places), size=len(LEVELS[level].objects))
    storage = {thing: places[index] for thing, index in zip(LEVELS[level].objects, stored, strict=True)}
    appliance = {family: group[rng.integers(len(group))] for family, group in tools.items()}
    return Facts(level, house, MappingProxyType(storage), MappingProxyType(appliance))


def changes_before(iteration: int, drift: int, houses: Sequence[str]) -> Mapping[str, int]:
    """Changes of each house before an iteration: after every ``drift`` iterations one house changes, in turn.

    Args:
        iteration: number of the iteration, from 1; 0 before the first.
        drift: iterations between two changes.
        houses: houses in the order of their turns.
    """
    rounds, rest = divmod(max(0, iteration - 1) // drift, len(houses))
    return {house: rounds + (index < rest) for index, house in enumerate(houses)}


def _another(choices: tuple[str, ...], taken: str, rng: np.random.Generator) -> str:
    shift = int(rng.integers(1, len(choices)))
    return choices[(choices.index(taken) + shift) % len(choices)]
