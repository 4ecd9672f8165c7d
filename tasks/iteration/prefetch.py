"""One-step-off-policy rollouts: the next batch is played while the policy learns from this one (``rollout.ahead``).

What was played ahead is part of the revision, in ``ahead/``: ``episodes.parquet`` and the figures of its retrieval,
``metrics.json``. It is taken where it is what would be played now; a rollback, a branch, or a person who decides about
the bank leaves other numbers to the next revision, which then plays for itself.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from coevo.records.episode import Episode, played
from coevo.records.task import Task
from coevo.tasks.gates.episodes import check_episodes
from coevo.tasks.iteration.batch import ids_of, measured, play, tasks_of
from coevo.tasks.iteration.held_out import limits_at
from coevo.tasks.pending_revision import PlayedBatch
from coevo.tasks.play.episode_metrics import check_losses
from coevo.tasks.play.treatment_groups import TaskBatch
from coevo.tasks.revision_artifacts import read_episodes, write_episodes
from coevo.tasks.session import Session
from coevo.tasks.stage import stage
from coevo.utilities.errors import CoevoError

FOLDER = "ahead"
"""Name of the artifact."""
METRICS = "metrics.json"


@contextmanager
def playing_ahead(session: Session) -> Iterator[None]:
    """Play the next iteration beside the block if ``rollout.ahead`` is set, and wait for both."""
    if not session.config.rollout.ahead or session.iteration + 1 == session.config.iterations:
        yield
        return
    with play_ahead.beside(session):
        yield


@stage("play ahead")
def play_ahead(session: Session) -> None:
    """Play the next iteration; what a gate or the next rollout would refuse must not be committed with this one."""
    at = session.beyond()
    seen = session.experience(at)
    episodes = play(session, at, TaskBatch(tasks_of(session, at)), seen)
    check_episodes(episodes, limits_at(session, at), session.stores.paths.quarantine)
    check_losses(episodes, session.config.rollout.lost_limit, "train")
    session.prefetched = measured(session, episodes, seen)


def awaited(session: Session, tasks: Sequence[Task]) -> PlayedBatch | None:
    """The batch as played ahead; None if another batch was played, or none."""
    batch, session.prefetched = session.prefetched, None
    if batch is None or [episode.id for episode in batch.episodes] != ids_of(session, session.here, tasks):
        return None
    return batch


def staleness(session: Session, episodes: Iterable[Episode]) -> dict[str, float]:
    """By how many updates the policy that wrote a turn is older than the one that learns from it, on average.

    Lost episodes are left out.
    """
    if not session.config.rollout.ahead:
        return {}
    ages = [session.iteration - turn.version for episode in played(episodes) for turn in episode.turns]
    return {"policy/staleness": sum(ages) / len(ages)}


def check_fresh(episodes: Iterable[Episode], iteration: int, ahead: int) -> None:
    """Make sure that an update learns from its own policy, or from one so many versions older.

    Raises:
        CoevoError: a turn was written by another one.
    """
    allowed = range(max(0, iteration - ahead), iteration + 1)
    for episode in episodes:
        for number, turn in enumerate(episode.turns):
            if turn.version not in allowed:
                raise CoevoError(
                    f"episode {episode.id}: turn {number} was written by version {turn.version} of the policy, and an "
                    f"update of version {iteration} learns from {allowed[0]} to {iteration} (rollout.ahead={ahead}): "
                    "play it again"
                )


def write_prefetched(batch: PlayedBatch | None, staging: Path) -> None:
    """Stage what was played ahead for the commit; no episodes where nothing was."""
    write_episodes([] if batch is None else batch.episodes, staging / FOLDER)
    (staging / FOLDER / METRICS).write_text(json.dumps({} if batch is None else batch.metrics, sort_keys=True))


def read_prefetched(directory: Path) -> PlayedBatch:
    """Episodes and metrics of a committed artifact."""
    return PlayedBatch(read_episodes(directory), json.loads((directory / METRICS).read_text()), {})
