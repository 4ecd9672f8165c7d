"""The plan of a level: everything that decides it, stored in the data of a task.

Seeds of different purposes leave different remainders, so that no level of one purpose equals one of another.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from coevo.envs.babyai.babyai_contents import NAME
from coevo.records.draws import Key, seed_of
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

Purpose = Literal["train", "panel", "fresh"]
PURPOSES: tuple[Purpose, ...] = ("train", "panel", "fresh")
_BITS = 46
"""Bits of a seed without its purpose; seeds stay exact as JSON numbers."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A level.

    Attributes:
        kind: one of ``KINDS``.
        seed: decides the rest.
        distractors: number of things that no instruction names.
        steps: actions after which the episode is cut.
        held_out: True if the instruction names held-out pairs only, False if it names none of them.
    """

    kind: str
    seed: int
    distractors: int
    steps: int
    held_out: bool

    def task(self, instruction: str, split: str) -> Task:
        """Task of this level."""
        return Task(NAME, self.kind, instruction, self.kind, split, asdict(self))


def plan_of(task: Task) -> Plan:
    """Plan of a task. Raises ``CoevoError`` for a task of another environment."""
    if task.env != NAME:
        raise CoevoError(f"task {task.id} belongs to environment {task.env!r}, not {NAME!r}: start it there")
    data: Mapping[str, Any] = task.data
    return Plan(**data)


def seed(purpose: Purpose, draw: Key) -> int:
    """Seed of a level for a purpose."""
    return (seed_of(draw) >> (64 - _BITS)) * len(PURPOSES) + PURPOSES.index(purpose)
