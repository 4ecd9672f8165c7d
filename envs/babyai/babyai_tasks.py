"""Tasks for training, for the panels, and for cloning, each from its own seeds."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from coevo.configs.env import BabyAIConfig
from coevo.envs.babyai.babyai_contents import KINDS, NAME
from coevo.envs.babyai.level_episode import begin
from coevo.envs.babyai.level_plan import Plan, Purpose, seed
from coevo.records.draws import Key, extend, generator, key
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError


@dataclass(frozen=True, slots=True)
class PanelKind:
    """A panel: its description, and a flag that is True if its instructions name held-out pairs."""

    about: str
    held_out: bool


PANELS: Mapping[str, PanelKind] = {
    "held-out": PanelKind("new rooms, and only names that no training instruction holds", True),
    "new-rooms": PanelKind("new rooms, instructions as in training", False),
}


def sample(config: BabyAIConfig, count: int, draw: Key, purpose: Purpose = "train") -> list[Task]:
    """``count`` tasks of the training split with equally likely kinds; ``purpose`` names the split."""
    kinds = generator(draw).integers(len(config.kinds), size=count)
    chosen = [config.kinds[kind] for kind in kinds]
    plans = [_plan(config, kind, seed(purpose, extend(draw, index)), False) for index, kind in enumerate(chosen)]
    return [_task(plan, purpose) for plan in plans]


@lru_cache(maxsize=16)
def panel(config: BabyAIConfig, name: str, size: int) -> tuple[Task, ...]:
    """First ``size`` tasks of a panel, kinds in turn. Raises ``CoevoError`` for an unknown name."""
    if name not in PANELS:
        raise CoevoError(f"panel {name!r} is not one of {NAME}: choose one of {', '.join(PANELS)}")
    kinds = (config.kinds[index % len(config.kinds)] for index in range(size))
    seeds = (seed("panel", key(NAME, "panel", name, index)) for index in range(size))
    held_out = PANELS[name].held_out
    return tuple(_task(_plan(config, kind, number, held_out), name) for kind, number in zip(kinds, seeds, strict=True))


def _plan(config: BabyAIConfig, kind: str, number: int, held_out: bool) -> Plan:
    return Plan(kind, number, config.distractors, config.steps or KINDS[kind].steps, held_out)


def _task(plan: Plan, split: str) -> Task:
    return plan.task(begin(plan).simulator.mission, split)
