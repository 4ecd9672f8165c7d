"""The rollout: an iteration's tasks (CoEvo-RL Algorithm 1, line 2), played now or ahead, taken into the run."""

from collections.abc import Sequence

from coevo.models.rewards import unrewarded
from coevo.records.episode import Episode, played
from coevo.records.metric_names import UNREWARDED
from coevo.tasks.iteration.batch import measured, play, play_vectorised, tasks_of, treatment_groups, with_revisited
from coevo.tasks.iteration.prefetch import awaited, staleness
from coevo.tasks.pending_revision import PlayedBatch, Result, apart, cost
from coevo.tasks.play.episode_metrics import check_losses, outcome_metrics, report_losses, spread, unusable_metrics
from coevo.tasks.play.treatment_groups import TaskBatch
from coevo.tasks.session import Session
from coevo.tasks.stage import stage, untracked


@stage("rollout")
def rollout(session: Session, drawn: TaskBatch) -> Result[list[Episode]]:
    """The batch of tasks, played; episodes in the order (task, replica).

    What was played of it ahead is taken (``rollout.ahead``); else it is played with the current policy and bank. With
    ``rollout.turns``, that many turns of each parallel environment: what of episodes was played in them, in the order
    (slot, time). Outcomes are those of the episodes that ended. With ``rollout.gateway``, agents with a loop of their
    own play.
    """
    source = session.source
    batch = source.collect(session) if source is not None else awaited(session, drawn.tasks) or _now(session, drawn)
    report_losses(session.stores.reporter, batch.episodes, "train")
    check_losses(batch.episodes, session.config.rollout.lost_limit, "train")
    metrics = _outcomes(session, batch.episodes) | batch.metrics | staleness(session, batch.episodes)
    metrics |= unusable_metrics(batch.episodes, session.config.alarm.unusable)
    return Result(batch.episodes, metrics, batch.rates, apart(cost(batch.episodes), "rollout"))


def _now(session: Session, drawn: TaskBatch) -> PlayedBatch:
    here, turns = session.here, session.config.rollout.turns
    seen = session.experience(here)
    episodes = play(session, here, drawn, seen) if turns is None else play_vectorised(session, turns, seen)
    return measured(session, episodes, seen)


def _outcomes(session: Session, episodes: Sequence[Episode]) -> dict[str, float]:
    ended = [session.environments.whole(episode) for episode in episodes if not episode.following]
    figures = outcome_metrics(ended, "train") | spread(ended) if ended else {}
    outcomes = [(episode.success, episode.reward) for episode in played(ended)]
    worthless = unrewarded(outcomes, session.parts.env.reward_range)
    figures |= {UNREWARDED: float(worthless)} if worthless else {}
    if session.config.rollout.turns is None:
        return figures
    unfinished = len(episodes) - len(ended)
    return figures | {"agent/episodes/ended": float(len(ended)), "agent/episodes/unfinished": float(unfinished)}


@untracked("sample tasks")
def sample(session: Session) -> Result[TaskBatch]:
    """Draw the batch of training tasks; no panel holds any of them, and groups of some may try candidates.

    Metrics say where a staged schedule stands. The batch is empty where parallel environments draw a task whenever they
    are free (``rollout.turns``), and where agents choose their own (``rollout.gateway``).
    """
    metrics = {} if session.config.schedule.type == "joint" else session.due.phase().metrics()
    if session.config.rollout.turns is not None or session.source is not None:
        return Result(TaskBatch(()), metrics)
    tasks = with_revisited(session, tasks_of(session, session.here))
    return Result(TaskBatch(tasks, treatment_groups(session)), metrics)
