"""The rollout: an iteration's batch, played now or ahead, taken into the run."""

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, stdev

from coevo.models.rewards.rewards import unrewarded
from coevo.records.episode import Episode, Turn, played
from coevo.records.faults import Fault
from coevo.records.metric_names import FAULTS, SPREAD, UNREWARDED, UNUSABLE
from coevo.records.task import Task
from coevo.tasks.draft import PlayedBatch, Result, apart, cost
from coevo.tasks.play.losses import check_losses, loss_metrics, report_losses
from coevo.tasks.session import Session
from coevo.tasks.stage import stage
from coevo.tasks.steps.ahead import awaited, staleness
from coevo.tasks.steps.batch import measured, play, play_slots
from coevo.tasks.steps.trial import arms


@stage("rollout")
def rollout(session: Session, tasks: Sequence[Task]) -> Result[list[Episode]]:
    """The batch of tasks; episodes in the order (task, replica).

    What was played of it ahead is taken (``rollout.ahead``); else it is played with the current policy and bank. With
    ``rollout.turns``, that many turns of each parallel environment: what of episodes was played in them, in the order
    (slot, time). Outcomes are those of the episodes that ended.
    """
    batch = awaited(session, tasks) or _now(session, tasks)
    report_losses(session.stores.reporter, batch.episodes, "train")
    check_losses(batch.episodes, session.config.rollout.lost_limit, "train")
    metrics = _outcomes(session, batch.episodes) | batch.metrics | staleness(session, batch.episodes)
    metrics |= unusable_metrics(batch.episodes, session.config.alarm.unusable)
    return Result(batch.episodes, metrics, batch.rates, apart(cost(batch.episodes), "rollout"))


def _now(session: Session, tasks: Sequence[Task]) -> PlayedBatch:
    here, turns = session.here(), session.config.rollout.turns
    seen, session.arms = session.experience(here), arms(session)
    episodes = play(session, here, tasks, seen) if turns is None else play_slots(session, turns, seen)
    return measured(session, episodes, seen)


def _outcomes(session: Session, episodes: Sequence[Episode]) -> dict[str, float]:
    ended = [session.slots.whole(episode) for episode in episodes if not episode.following]
    figures = outcome_metrics(ended, "train") | spread(ended) if ended else {}
    outcomes = [(episode.success, episode.reward) for episode in played(ended)]
    worthless = unrewarded(outcomes, session.parts.env.reward_range)
    figures |= {UNREWARDED: float(worthless)} if worthless else {}
    if session.config.rollout.turns is None:
        return figures
    unfinished = len(episodes) - len(ended)
    return figures | {"agent/episodes/ended": float(len(ended)), "agent/episodes/unfinished": float(unfinished)}


def outcome_metrics(episodes: Sequence[Episode], panel: str) -> dict[str, float]:
    """Success, reward and length of a batch, by panel; lost episodes are only counted."""
    sound, losses = played(episodes), loss_metrics(episodes, panel)
    if not sound:
        return losses
    turns = [turn for episode in sound for turn in episode.turns]
    return losses | {
        f"agent/success/{panel}": fmean(episode.success for episode in sound),
        f"agent/reward/{panel}": sum(episode.reward for episode in sound) / len(sound),
        f"agent/turns/{panel}": len(turns) / len(sound),
        f"agent/truncated/{panel}": fmean(episode.truncated for episode in sound),
        f"agent/invalid/{panel}": sum(not turn.valid for turn in turns) / max(1, len(turns)),
    }


def spread(episodes: Sequence[Episode]) -> dict[str, float]:
    """Standard error of the success rate over tasks, whose attempts resemble each other; empty for a single task."""
    groups: dict[str, list[float]] = {}
    for episode in played(episodes):
        groups.setdefault(episode.task.id, []).append(float(episode.success))
    means = [fmean(group) for group in groups.values()]
    return {SPREAD: stdev(means) / len(means) ** 0.5} if len(means) > 1 else {}


def unusable_metrics(episodes: Sequence[Episode], limit: float) -> dict[str, float]:
    """Number of answers by fault, and the share of answers of which no action was used if it is above a limit.

    Answers that the environment refuses are only counted above the limit: below, they are part of learning. One that is
    cut behind an action which the environment understood was used. Lost episodes are left out.
    """
    turns = [turn for episode in played(episodes) for turn in episode.turns]
    reasons = Counter(filter(None, map(_reason, turns)))
    share = reasons.total() / len(turns) if turns else 0.0
    counted = reasons if share > limit else Counter(turn.fault for turn in turns if turn.fault)
    metrics = {f"{FAULTS}{reason.replace(' ', '_')}": float(count) for reason, count in counted.items()}
    return metrics | ({UNUSABLE: share} if share > limit else {})


def _reason(turn: Turn) -> str:
    """Reason why an answer was not used; empty if the environment understood its action."""
    if turn.fault:
        return turn.fault
    if turn.action and turn.valid:
        return ""
    cut = not turn.completion.finished and turn.completion.text.rstrip().endswith(turn.action)
    return Fault.CUT_OFF if cut else Fault.REFUSED if turn.action else Fault.NO_ACTION
