"""Metrics of a batch: outcomes, unusable answers, and lost or cut episodes with the limit that stops a run."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from statistics import fmean, stdev

from coevo.records.answer_faults import Fault
from coevo.records.episode import Episode, Turn, played
from coevo.records.metric_names import FAULTS, SCORES, SPREAD, UNUSABLE
from coevo.tasks.publish.reporter import Reporter
from coevo.utilities.errors import CoevoError

PLACE = re.compile(r" \(turn \d+, .*\)$", re.DOTALL)
"""End of a reason that names the turn."""
MAX_REASONS = 5
"""Most reasons of a message."""


def loss_counts(episodes: Sequence[Episode], panel: str) -> dict[str, int]:
    """Number of lost and of cut episodes of a panel by kind of reason; kinds that did not occur have no metric."""
    reasons = [(name, getattr(episode, name)) for episode in episodes for name in ("lost", "cut")]
    counted = Counter(f"agent/{name}/{panel}/{_kind(reason)}" for name, reason in reasons if reason)
    return {name: counted[name] for name in sorted(counted)}


def loss_metrics(episodes: Sequence[Episode], panel: str) -> dict[str, float]:
    """Counts of ``loss_counts`` as metrics."""
    return {name: float(count) for name, count in loss_counts(episodes, panel).items()}


def report_losses(reporter: Reporter, episodes: Sequence[Episode], panel: str) -> None:
    """Warn of lost and cut episodes, with the first reason of each, and with the counts of several."""
    shorter = "; lower context.experience_tokens, context.memory_length or context.observation_tokens"
    for name, remedy in (("lost", ""), ("cut", shorter)):
        reasons = [reason for episode in episodes if (reason := getattr(episode, name))]
        if reasons:
            reporter.warn(
                f"{panel}: {len(reasons)} of {len(episodes)} episodes {name}, first {reasons[0]}"
                f"{_counted(reasons)}{remedy}"
            )


def check_losses(episodes: Sequence[Episode], limit: float, panel: str) -> None:
    """Check that few episodes were lost, and that some can teach.

    Raises:
        CoevoError: more than the share ``limit`` was lost, or no episode has a turn.
    """
    lost = [episode.lost for episode in episodes if episode.lost]
    if len(lost) > limit * len(episodes):
        (reason, count), *_ = Counter(map(_shared, lost)).most_common(1)
        raise CoevoError(
            f"{panel}: the environment lost {len(lost)} of {len(episodes)} episodes, more than rollout.lost_limit="
            f"{limit:g} allows; {count} of them by {reason}{_counted(lost)}: mend the environment "
            "(`coevo envs check` tries it), then `coevo resume` plays them again"
        )
    if episodes and not any(episode.teaches for episode in episodes):
        reason = next(episode.cut for episode in episodes if not episode.lost)
        raise CoevoError(
            f"{panel}: no episode has a turn, first {reason}: use a model with a longer context window or shorter texts"
        )


def _counted(reasons: Sequence[str]) -> str:
    """Counts of the most frequent reasons; empty where all have the same one."""
    counted = Counter(map(_shared, reasons)).most_common()
    if len(counted) == 1:
        return ""
    others = sum(count for _, count in counted[MAX_REASONS:])
    named = [f"{count} by {reason}" for reason, count in counted[:MAX_REASONS]]
    return f"; in all {', '.join(named)}{f', {others} by others' if others else ''}"


def _shared(reason: str) -> str:
    """The part of a reason that other episodes can share: without its turn and action."""
    return PLACE.sub("", reason)


def _kind(reason: str) -> str:
    return reason.partition(":")[0]


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
        **{f"{SCORES}/{panel}/{name}": mean for name, mean in mean_scores(turn.scores for turn in turns).items()},
    }


def mean_scores(turns: Iterable[Iterable[tuple[str, float]]]) -> dict[str, float]:
    """Mean of each value that rewards are made of, over the turns that have it."""
    values: dict[str, list[float]] = {}
    for name, value in chain.from_iterable(turns):
        values.setdefault(name, []).append(value)
    return {name: fmean(found) for name, found in values.items()}


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
