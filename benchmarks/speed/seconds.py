"""Where the time of a run went, from the seconds and timestamps in its manifests."""

from collections.abc import Sequence

from coevo.lineage.revision.manifest import Manifest
from coevo.tasks.cost import learning_seconds, stages

LEARNING = ("rollout", "update", "judge", "evaluate")
"""Stages that do the work of an iteration; all else is orchestration."""


def loop(history: Sequence[Manifest]) -> float:
    """Seconds spent on learning in the iterations of a run."""
    return sum(learning_seconds(manifest) for manifest in history[1:])


def orchestration(before: Manifest, after: Manifest) -> float:
    """Seconds from one commit to the next that none of ``LEARNING`` took.

    It is what is left of the time between the two, so that what runs between the stages counts too.
    """
    return between(before, after) - sum(stages(after).get(name, 0.0) for name in LEARNING)


def share(before: Manifest, after: Manifest) -> float:
    """Orchestration as a share of the iteration without its evaluation."""
    return orchestration(before, after) / (between(before, after) - stages(after).get("evaluate", 0.0))


def between(before: Manifest, after: Manifest) -> float:
    """Seconds from one commit to the next."""
    return float(after.observed["timestamp"] - before.observed["timestamp"]) / 1000
