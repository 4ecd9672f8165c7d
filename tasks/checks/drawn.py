"""Check of the tasks of an environment: those for training, and those of its panels."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from coevo.envs.base import Environment
from coevo.envs.failures import EpisodeFailure, attempted
from coevo.records.draws import Key, extend
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError, counted

DRAWN = 256
"""Training tasks that are compared with each panel, and most tasks of a panel."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one check.

    Attributes:
        name: promise of the interface.
        passed: True if it holds.
        text: measurement, or what is wrong and what to do about it.
    """

    name: str
    passed: bool
    text: str

    def __str__(self) -> str:
        return f"{'ok  ' if self.passed else 'FAIL'}  {self.name}: {self.text}"


def sampling(env: Environment[object], draw: Key) -> CheckResult:
    """Check that training tasks differ and are of the training split."""
    tasks = _trained(env, draw)
    different, splits = len({task.id for task in tasks}), {task.split for task in tasks}
    problems = {
        f"of {len(tasks)} tasks {len(tasks) - different} are returned again: return different ones": (
            different < len(tasks)
        ),
        f"its tasks have split {', '.join(sorted(splits))}: set split to train": splits != {"train"},
    }
    wrong = [text for text, holds in problems.items() if holds]
    return CheckResult("sample", not wrong, wrong[0] if wrong else counted(len(tasks), "different task"))


def _trained(env: Environment[object], draw: Key) -> list[Task]:
    """Training tasks, fewer than ``DRAWN`` where the environment does not have so many."""
    count, root = DRAWN, extend(draw, "panels")
    while count > 1:
        tasks = attempted(partial(env.sample, count, root))
        if not isinstance(tasks, EpisodeFailure):
            return tasks
        count //= 2
    return env.sample(1, root)


def panels(env: Environment[object], draw: Key) -> Iterator[CheckResult]:
    """Check that tasks of a panel stay the same, are of its split, and are none of training."""
    trained = {task.id for task in _trained(env, draw)}
    for name in env.panels:
        size = next(size for size in range(DRAWN, 0, -1) if size == 1 or _has(env, name, size))
        panel = env.panel(name, size)
        shared, splits = trained & {task.id for task in panel.tasks}, {task.split for task in panel.tasks}
        problems = {
            f"{len(shared)} of its tasks are training tasks: sample must leave them out": bool(shared),
            "it differs from call to call: derive it from its name": panel != env.panel(name, size),
            f"its tasks have split {', '.join(sorted(splits))}: set split to the panel's name": splits != {name},
        }
        wrong = [text for text, holds in problems.items() if holds]
        text = f"{counted(size, 'task')}, none of them for training"
        yield CheckResult(f"panel {name}", not wrong, wrong[0] if wrong else text)


def _has(env: Environment[object], panel: str, size: int) -> bool:
    """Report whether a panel has so many tasks."""
    try:
        return len(env.panel(panel, size).tasks) == size
    except CoevoError:
        return False
