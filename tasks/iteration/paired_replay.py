"""Replays: do candidates help the current policy on the tasks that taught them? (CoEvo-RL Eq. 7)"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice

from coevo.memory.admission.admission import Trial
from coevo.records.draws import extend
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.task import Task
from coevo.tasks.pending_revision import cost
from coevo.tasks.play.episode_metrics import check_losses, loss_counts, report_losses
from coevo.tasks.play.play import Attempt
from coevo.tasks.session import Session

MOST_READERS = 4
"""Most tasks on which the removal of an entry is replayed."""


def replay(session: Session, spent: Counter[str], trials: Sequence[Trial], replicas: int) -> list[list[float]]:
    """Rewards of each trial, NaN where the environment failed; trials are played together, in batches of a rollout.

    Args:
        session: whose policy plays.
        spent: receives the cost of the episodes, and the number of lost and of cut ones.
        trials: candidates on trial.
        replicas: episodes per task.

    Raises:
        CoevoError: the environment lost too many of the episodes, or none of them has a turn.
    """
    rewards, rollout, played = [list[float]() for _ in trials], session.config.rollout, list[Episode]()
    attempts = (
        (mine, attempt)
        for mine, trial in zip(rewards, trials, strict=True)
        for attempt in _attempts(session, trial, replicas)
    )
    while batch := list(islice(attempts, rollout.tasks * rollout.group_size)):
        episodes = session.parts.worker.play([attempt for _, attempt in batch])
        played += episodes
        spent.update(cost(episodes))
        spent.update(loss_counts(episodes, "replay"))
        for (mine, _), episode in zip(batch, episodes, strict=True):
            mine.append(math.nan if episode.lost else episode.reward)
    report_losses(session.stores.reporter, played, "replay")
    check_losses(played, rollout.lost_limit, "replay")
    return rewards


def _attempts(session: Session, trial: Trial, replicas: int) -> list[Attempt]:
    """Draws depend on task and replica alone: two trials on the same tasks are paired."""
    seen = session.recall(session.index_with(trial.added, trial.removed))
    key, revision = session.key("replay"), session.pending.revision
    return [
        Attempt(task, n, seen.of_task(task), "replay", revision, extend(key, task.id, n), partial(seen.of_step, task))
        for task in [*source_tasks(session, trial.sources), *readers(session, trial.read)]
        for n in range(trial.first, trial.first + replicas)
    ]


def source_tasks(session: Session, candidates: Sequence[Entry]) -> list[Task]:
    """The tasks that produced the candidates, in the order they were played, with the facts in force."""
    sources = {source for entry in candidates for source in entry.sources}
    return in_force(session, (episode.task for episode in session.recent if episode.id in sources))


def readers(session: Session, entries: Sequence[Entry]) -> list[Task]:
    """At most ``MOST_READERS`` tasks since the last firing that retrieved one of the entries, in playing order.

    They have the facts in force.
    """
    shown, ids = session.recent, {entry.id for entry in entries}
    found = (e.task for e in shown if any(ids.intersection(turn.retrieved) for turn in e.turns))
    return in_force(session, found)[:MOST_READERS]


def in_force(session: Session, tasks: Iterable[Task]) -> list[Task]:
    """Different tasks of this or earlier iterations, in their order, with the facts of this iteration.

    A lesson about facts that have changed since is no longer true for the rest of the run.
    """
    env = session.parts.env.at(session.iteration + 1)
    return list({task.id: task for task in map(env.renewed, tasks)}.values())
