"""The plan of a level: all that decides it, as it travels in the data of a task.

Seeds of different purposes leave different remainders, so that no level of one can be one of another.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from configs.errors import CoevoError
from envs.babyai.catalogue import NAME
from records.draws import Key, seed_of
from records.task import Task

Purpose = Literal["train", "panel", "fresh"]
PURPOSES: tuple[Purpose, ...] = ("train", "panel", "fresh")
_BITS = 46
"""Bits of a seed besides its purpose; seeds stay exact as JSON numbers."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A level.

    Attributes:
        kind: one of ``KINDS``.
        seed: decides the rest.
        distractors: things that no instruction names.
        steps: actions after which the episode is cut.
        held_out: whether the instruction names only held-out pairs, or none of them.
    """

    kind: str
    seed: int
    distractors: int
    steps: int
    held_out: bool

    def task(self, instruction: str, split: str) -> Task:
        """The task of this level."""
        return Task(NAME, self.kind, instruction, self.kind, split, asdict(self))


def plan_of(task: Task) -> Plan:
    """The plan of a task. Raises ``CoevoError`` for a task of another environment."""
    if task.env != NAME:
        raise CoevoError(f"task {task.id} is of environment {task.env!r}, not {NAME!r}: start it there")
    data: Mapping[str, Any] = task.data
    return Plan(**data)


def seed(purpose: Purpose, draw: Key) -> int:
    """A level's seed for a purpose."""
    return (seed_of(draw) >> (64 - _BITS)) * len(PURPOSES) + PURPOSES.index(purpose)
