"""Lost and cut episodes of a batch: metrics by reason, a warning, and the limit that stops a run."""

import re
from collections import Counter
from collections.abc import Sequence

from coevo.records.episode import Episode
from coevo.tasks.publish.reporter import Reporter
from coevo.utilities.errors import CoevoError

PLACE = re.compile(r" \(turn \d+, .*\)$", re.DOTALL)
"""End of a reason that names the turn."""
SHOWN = 5
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
        raise CoevoError(f"{panel}: no episode has a turn, first {reason}: choose a longer policy or shorter texts")


def _counted(reasons: Sequence[str]) -> str:
    """Counts of the most frequent reasons; empty where all have the same one."""
    counted = Counter(map(_shared, reasons)).most_common()
    if len(counted) == 1:
        return ""
    others = sum(count for _, count in counted[SHOWN:])
    named = [f"{count} by {reason}" for reason, count in counted[:SHOWN]]
    return f"; in all {', '.join(named)}{f', {others} by others' if others else ''}"


def _shared(reason: str) -> str:
    """The part of a reason that other episodes can share: without its turn and action."""
    return PLACE.sub("", reason)


def _kind(reason: str) -> str:
    return reason.partition(":")[0]
