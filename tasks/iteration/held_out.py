"""Held-out panels of an iteration, and the limits of its training episodes."""

from bisect import bisect_left
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment
from coevo.records.draws import extend, key
from coevo.records.episode import Episode
from coevo.records.task import Panel, Task
from coevo.tasks.gates.episodes import EpisodeLimits
from coevo.tasks.pending_revision import Position
from coevo.tasks.play.play import Attempt, Playing
from coevo.tasks.play.retrieve import Experience
from coevo.tasks.session import Session
from coevo.utilities.errors import CoevoError


def panel_of(session: Session, name: str) -> Panel:
    """Panel of the evaluation that is due, in the world of the iteration that it ends."""
    return session.parts.env.at(session.updates).panel(name, session.config.evaluation.tasks)


def episode_limits(config: RunConfig, env: Environment[object], max_positions: int) -> EpisodeLimits:
    """Limits of training episodes, from the configuration and the environment's panels."""
    rollout = config.rollout
    return EpisodeLimits(
        group_size=rollout.group_size if rollout.gateway is None else None,
        reward_range=env.reward_range,
        max_new_tokens=rollout.sampling.max_new_tokens,
        max_positions=max_positions,
        known=config.policy.type != "endpoint",
        **held_out(config, env)._asdict(),
    )


def limits_at(session: Session, at: Position) -> EpisodeLimits:
    """Limits of an iteration's episodes: the panels of a world that drifts have other tasks later."""
    env, limits = session.parts.env.at(at.iteration + 1), session.parts.limits
    return limits if env is session.parts.env else replace(limits, **held_out(session.config, env)._asdict())


class HeldOutTasks(NamedTuple):
    """Tasks of all panels of an environment, as ``EpisodeLimits`` has them."""

    held_out: frozenset[str]
    held_out_data: frozenset[str]


def held_out(config: RunConfig, env: Environment[object]) -> HeldOutTasks:
    """Tasks of all panels of an environment; data that several of them share tell no task apart, and are left out."""
    tasks = {task.id: task for name in env.panels for task in _tasks_of(config, env, name)}
    sharing = Counter(task.data_digest for task in tasks.values() if task.data)
    return HeldOutTasks(frozenset(tasks), frozenset(digest for digest, count in sharing.items() if count == 1))


def _tasks_of(config: RunConfig, env: Environment[object], name: str) -> tuple[Task, ...]:
    """Tasks of a panel as the run evaluates it; all of one that it does not play and that has fewer."""
    most = config.evaluation.tasks
    try:
        return env.panel(name, most).tasks
    except CoevoError as error:
        if name in (*config.evaluation.panels, *config.evaluation.final_panels):
            raise
        has = bisect_left(range(1, most), True, key=lambda size: _lacks(env, name, size))
        if has == 0:
            raise error from None
        return env.panel(name, has).tasks


def _lacks(env: Environment[object], name: str, size: int) -> bool:
    try:
        env.panel(name, size)
    except CoevoError:
        return True
    return False


def play_panel(worker: Playing, panel: Panel, seen: Experience, seed: int, revision: int) -> list[Episode]:
    """One episode per task. Draws depend on seed and task alone, so that any two policies or banks are paired."""
    base, stage = key(seed, "evaluate"), f"evaluate-{panel.name}"
    return worker.play(
        [
            Attempt(task, 0, seen.of_task(task), stage, revision, extend(base, task.id), partial(seen.of_step, task))
            for task in panel.tasks
        ]
    )
