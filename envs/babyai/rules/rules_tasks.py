"""Rooms with two things each: tasks for training, and held-out tasks for the panels."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from coevo.configs.env import BabyAIRulesConfig
from coevo.envs.babyai.babyai_contents import THINGS, ThingName
from coevo.envs.babyai.rules.tower_world import COLOURS, NAME, TOWERS, custom, true_note
from coevo.records.draws import Key, generator, key, seed_of
from coevo.records.entry import Entry
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

KIND = "unlock"
_ONE_IN = 4
"""Inverse share of held-out pairs of things in a tower."""
APART, AHEAD, DOORS = (1, 2), (0, 1), (2, 3, 4)
"""Columns from the agent to either thing, rows ahead of the agent, and columns of the door."""


class RulesTaskPlan(NamedTuple):
    """A task: everything that decides it.

    Attributes:
        world: name of the world.
        tower: its tower.
        left: thing on the left, as ``red key``.
        right: thing on the right.
        apart: columns from the agent to either thing.
        ahead: rows from the agent to the things.
        door: column of the door.
        steps: actions after which an episode is cut.
    """

    world: str
    tower: str
    left: str
    right: str
    apart: int
    ahead: int
    door: int
    steps: int

    @property
    def attribute(self) -> str:
        """Attribute that the door obeys."""
        return custom(self.world, self.tower)

    @property
    def names(self) -> tuple[ThingName, ThingName]:
        """Names of the two things."""
        return ThingName(*self.left.split()), ThingName(*self.right.split())

    def instruction(self) -> str:
        """Task in words; the order of the things says nothing about their places."""
        return f"tower {self.tower} . open the door with the {' or the '.join(sorted((self.left, self.right)))}"


def task_of(plan: RulesTaskPlan, split: str) -> Task:
    """Task of a plan."""
    return Task(NAME, KIND, plan.instruction(), plan.tower, split, plan._asdict())


def plan_of(task: Task) -> RulesTaskPlan:
    """Plan of a task. Raises ``CoevoError`` for a task of another environment."""
    if task.env != NAME:
        raise CoevoError(f"task {task.id} belongs to environment {task.env!r}, not {NAME!r}: start it there")
    data: Mapping[str, Any] = task.data
    return RulesTaskPlan(*(data[name] for name in RulesTaskPlan._fields))


@dataclass(frozen=True, slots=True)
class RulesPanelKind:
    """A panel: its description, its kind of world, and its bank: the run's own, none, or the true notes."""

    about: str
    world: str
    bank: Literal["own", "none", "true"]


PANELS: Mapping[str, RulesPanelKind] = {
    "seen-towers": RulesPanelKind("new pairs of things in the training towers", "train", "own"),
    "no-bank": RulesPanelKind("the same tasks, without the bank", "train", "none"),
    "other-facts": RulesPanelKind("the same towers with other customs, all given as notes", "other-facts", "true"),
}


def sample(config: BabyAIRulesConfig, count: int, draw: Key) -> list[Task]:
    """Draw ``count`` training tasks: towers, pairs and rooms uniform; none repeats before all are used up."""
    rng, world, plans, used = generator(draw), f"train/{config.world}", list[RulesTaskPlan](), set[RulesTaskPlan]()
    rooms = len(APART) * len(AHEAD) * len(DOORS)
    every = rooms * sum(len(_pairs(world, tower, False)) for tower in TOWERS[: config.towers])
    while len(plans) < count:
        plan = draw_plan(world, config, rng, False)
        if plan not in used or len(used) == every:
            used.add(plan)
            plans.append(plan)
    return [task_of(plan, "train") for plan in plans]


def draw_plan(
    world: str, config: BabyAIRulesConfig, rng: np.random.Generator, held_out: bool | None = None
) -> RulesTaskPlan:
    """Draw a task of a world, among held-out pairs, the others, or all of them (None)."""
    tower = TOWERS[rng.integers(config.towers)]
    pairs = _pairs(world, tower, held_out)
    left, right = pairs[rng.integers(len(pairs))]
    apart, ahead, door = (int(choice[rng.integers(len(choice))]) for choice in (APART, AHEAD, DOORS))
    return RulesTaskPlan(world, tower, left, right, apart, ahead, door, config.steps)


@lru_cache(maxsize=16)
def panel(config: BabyAIRulesConfig, name: str, size: int) -> tuple[Task, ...]:
    """First ``size`` tasks of a panel, towers in turn. Raises ``CoevoError`` for an unknown name or too many."""
    world = f"{panel_kind(name).world}/{config.world}"
    towers = [_held_out(world, tower, config.steps) for tower in TOWERS[: config.towers]]
    most = min(map(len, towers)) * len(towers)
    if size > most:
        raise CoevoError(f"panel {name!r} has {most} tasks with env.towers={config.towers}, not {size}: request fewer")
    plans = [towers[index % len(towers)][index // len(towers)] for index in range(size)]
    return tuple(task_of(plan, name) for plan in plans)


def panel_kind(name: str) -> RulesPanelKind:
    """Kind of a panel. Raises ``CoevoError`` for an unknown name."""
    if name not in PANELS:
        raise CoevoError(f"panel {name!r} is not one of {NAME}: choose one of {', '.join(PANELS)}")
    return PANELS[name]


def panel_bank(config: BabyAIRulesConfig, name: str) -> list[Entry] | None:
    """Bank of a panel: None for the run's own, otherwise the notes of its kind."""
    kind = panel_kind(name)
    if kind.bank == "own":
        return None
    towers = TOWERS[: config.towers] if kind.bank == "true" else ()
    return [true_note(f"{kind.world}/{config.world}", tower) for tower in towers]


@lru_cache(maxsize=4096)
def _pairs(world: str, tower: str, held_out: bool | None) -> list[tuple[str, str]]:
    """Pairs of things, left and right, that differ in colour and kind, one of which opens the door."""
    every = [ThingName(*name) for name in product(COLOURS, THINGS)]
    obeyed = custom(world, tower)
    pairs = [
        (" ".join(left), " ".join(right))
        for left, right in product(every, every)
        if left.colour != right.colour and left.thing != right.thing and (obeyed in left) != (obeyed in right)
    ]
    return [pair for pair in pairs if held_out is None or _is_held_out(tower, *pair) == held_out]


def _is_held_out(tower: str, left: str, right: str) -> bool:
    """Report whether a pair belongs to the panels: a hash of tower and things decides, in every world alike."""
    return seed_of(key(NAME, "split", tower, *sorted((left, right)))) % _ONE_IN == 0


def _held_out(world: str, tower: str, steps: int) -> list[RulesTaskPlan]:
    """Held-out tasks of a tower, in a fixed random order that is the same at every number of towers."""
    rooms = product(_pairs(world, tower, True), APART, AHEAD, DOORS)
    plans = [RulesTaskPlan(world, tower, *pair, apart, ahead, door, steps) for pair, apart, ahead, door in rooms]
    order = generator(key(NAME, "order", world, tower)).permutation(len(plans))
    return [plans[index] for index in order]
