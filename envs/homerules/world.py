"""The hidden conventions of a house: a pure function of level, world and the house's name.

Worlds are named ``<purpose>/<number>``, so that worlds of different purposes can never be the same one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from envs.homerules.catalogue import LEVELS
from envs.homerules.language import fails, inside, works
from records.draws import Key, generator, key, seed_of


@dataclass(frozen=True, slots=True)
class Facts:
    """What is true in one house.

    Attributes:
        level: which places and appliances there are.
        house: its name.
        storage: the closed place of each object class.
        appliance: the one that works, by family.
    """

    level: int
    house: str
    storage: Mapping[str, str]
    appliance: Mapping[str, str]

    @property
    def subjects(self) -> tuple[str, ...]:
        """Everything that there is a fact about: object classes, then families."""
        return (*self.storage, *self.appliance)

    def lesson(self, subject: str) -> str:
        """The fact about an object class or a family, as a lesson."""
        if subject in self.storage:
            return f"{self.house} {inside(subject, self.storage[subject])}"
        return f"{self.house} {works(subject, self.appliance[subject])}"

    def warnings(self, family: str) -> list[str]:
        """Lessons that tell which appliances do not work for a family."""
        candidates = LEVELS[self.level].appliances[family]
        return [f"{self.house} {fails(family, tool)}" for tool in candidates if tool != self.appliance[family]]

    def contrary(self, rng: np.random.Generator) -> "Facts":
        """The same house with every fact replaced by one that is false here."""
        level = LEVELS[self.level]
        storage = {thing: _another(level.places, place, rng) for thing, place in self.storage.items()}
        tools = {name: _another(level.appliances[name], tool, rng) for name, tool in self.appliance.items()}
        return Facts(self.level, self.house, storage, tools)


def fresh(draw: Key) -> str:
    """The name of a world that is neither trained nor evaluated in."""
    return f"fresh/{seed_of(draw):016x}"


@lru_cache(maxsize=4096)
def facts(level: int, world: str, house: str) -> Facts:
    """The conventions of a house: each one uniform and independent of all others."""
    rng = generator(key("homerules", level, world, house))
    places, tools = LEVELS[level].places, LEVELS[level].appliances
    stored = rng.integers(len(places), size=len(LEVELS[level].objects))
    storage = {thing: places[index] for thing, index in zip(LEVELS[level].objects, stored, strict=True)}
    appliance = {family: group[rng.integers(len(group))] for family, group in tools.items()}
    return Facts(level, house, MappingProxyType(storage), MappingProxyType(appliance))


def _another(choices: tuple[str, ...], taken: str, rng: np.random.Generator) -> str:
    shift = int(rng.integers(1, len(choices)))
    return choices[(choices.index(taken) + shift) % len(choices)]
