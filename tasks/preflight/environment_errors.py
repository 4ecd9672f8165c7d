"""Calls of an environment's code before a start: a failure is one line that names the method."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment, Guide
from coevo.envs.failures import RAISED, EpisodeFailure, described, one_line
from coevo.records.draws import Key, key
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

T = TypeVar("T")


def sampled(env: Environment[Any], count: int, draw: Key) -> list[Task]:
    """Draw training tasks: so many, or fewer where there are no more.

    Raises:
        CoevoError: ``sample`` fails, or returns anything else than tasks.
    """
    tasks = asked(env, "sample", partial(env.sample, count, draw))
    is_known = isinstance(tasks, list | tuple) and all(isinstance(each, Task) for each in tasks)
    if not is_known or not 0 < len(tasks) <= count:
        raise CoevoError(
            f"{env.name}.sample returns {one_line(f'{tasks!r:.80}')}: return {count} tasks, as many as asked"
        )
    return list(tasks)


def check_batch(config: RunConfig, env: Environment[Any]) -> None:
    """Check that the environment has the tasks of an iteration.

    Raises:
        CoevoError: it has fewer.
    """
    least = 1 if config.rollout.turns else config.rollout.tasks
    there = len(sampled(env, least, key(config.seed, "rehearsal", "batch")))
    if there < least:
        raise CoevoError(
            f"{env.name}.sample returned {there} of {least} tasks: set rollout.tasks={there} or fewer, or return more"
        )


def guided(env: Environment[Any], task: Task) -> Guide:
    """Guide of a task.

    Raises:
        CoevoError: ``guide`` fails, or returns anything else than a guide.
    """
    guide = env.try_guide(task)
    if isinstance(guide, EpisodeFailure):
        raise CoevoError(f"{env.name}.guide fails on task {task.id}: {guide}: correct it; `coevo envs check` tries it")
    return guide


def asked(env: Environment[Any], method: str, call: Callable[[], T]) -> T:
    """Result of a method.

    Raises:
        CoevoError: it raises an exception.
    """
    try:
        return call()
    except CoevoError:
        raise
    except RAISED as error:
        raise CoevoError(
            f"{env.name}.{method} fails: {described(error)}: correct it; `coevo envs check` tries it"
        ) from error
