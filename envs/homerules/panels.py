"""Held-out panels: their tasks, their world, and their bank."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from coevo.configs.env import HomeRulesConfig
from coevo.envs.homerules.house_conventions import Facts, facts
from coevo.envs.homerules.house_tasks import pools, task_of
from coevo.envs.homerules.house_world import HOUSES, OTHER_HOUSES
from coevo.records.entry import Entry, entry_id
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError


@dataclass(frozen=True, slots=True)
class HousePanelKind:
    """A panel: its description, its houses, its kind of world, and its bank: the run's own, none, or the truth."""

    about: str
    houses: tuple[str, ...]
    world: str
    bank: Literal["own", "none", "true"]


PANELS: Mapping[str, HousePanelKind] = {
    "seen-houses": HousePanelKind("new tasks in the training houses", HOUSES, "train", "own"),
    "no-bank": HousePanelKind("the same tasks, without the bank", HOUSES, "train", "none"),
    "other-facts": HousePanelKind(
        "the same houses with other facts, all given as notes", HOUSES, "other-facts", "true"
    ),
    "other-houses": HousePanelKind("other houses, all facts given as notes", OTHER_HOUSES, "other-houses", "true"),
}


def panel(config: HomeRulesConfig, changes: Mapping[str, int], name: str, size: int) -> tuple[Task, ...]:
    """First ``size`` held-out tasks of a panel, families in turn. Raises ``CoevoError`` if it has fewer.

    ``changes`` has the number of changes of each training house that has changed; other worlds stay as they are.
    """
    kind, level, houses = panel_kind(name), config.level, config.houses
    changed = changes if kind.world == "train" else {}
    families = list(pools(level, kind.houses[:houses]).held_out.values())
    most = min(map(len, families)) * len(families)
    if size > most:
        raise CoevoError(f"panel {name!r} has {most} tasks with env.houses={houses}, not {size}: request fewer")
    goals = [families[index % len(families)][index // len(families)] for index in range(size)]
    world = f"{kind.world}/{config.world}"
    return tuple(task_of(goal, level, world, name, changed.get(goal.house, 0)) for goal in goals)


def panel_kind(name: str) -> HousePanelKind:
    """Kind of a panel. Raises ``CoevoError`` for an unknown name."""
    if name not in PANELS:
        raise CoevoError(f"panel {name!r} is not one of homerules: choose one of {', '.join(PANELS)}")
    return PANELS[name]


def panel_bank(config: HomeRulesConfig, name: str) -> list[Entry] | None:
    """Bank of a panel: None for the run's own, otherwise the entries of its kind."""
    kind = panel_kind(name)
    if kind.bank == "own":
        return None
    homes = kind.houses[: config.houses] if kind.bank == "true" else ()
    known = [facts(config.level, f"{kind.world}/{config.world}", house) for house in homes]
    return [_entry(house, subject) for house in known for subject in house.subjects]


def _entry(house: Facts, subject: str) -> Entry:
    lesson = house.lesson(subject)
    example = f"go {house.storage[subject]}" if subject in house.storage else f"use {house.appliance[subject]}"
    return Entry(
        id=entry_id(house.house, lesson),
        strategy=lesson,
        condition=subject,
        example=example,
        keywords=f"{house.house} {subject}",
        scope=house.house,
        split="train",
        sources=(),
        created=0,
        edited=0,
    )
