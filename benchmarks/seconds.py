"""Where the time of a run went, from the seconds and timestamps in its manifests."""

from collections.abc import Sequence

from lineage.manifest import Manifest

OUTSIDE = ("evaluate", "gate panels", "warm start")
"""Stages that measure or prepare: they do not count as time spent on learning."""
LEARNING = ("rollout", "update", "judge", "evaluate")
"""Stages that do the work of an iteration; all else is orchestration."""


def stages(manifest: Manifest) -> dict[str, float]:
    """Seconds of every stage that ran for this revision."""
    found = {name.removeprefix("seconds/"): spent for name, spent in manifest.observed["metrics"].items()
             if name.startswith("seconds/")}  # fmt: skip
    return {name: spent for name, spent in found.items() if name != "wall"}


def loop(history: Sequence[Manifest]) -> float:
    """Seconds spent on learning in the iterations of a run: all stages but those of ``OUTSIDE``."""
    return sum(spent for manifest in history[1:] for name, spent in stages(manifest).items() if name not in OUTSIDE)


def orchestration(before: Manifest, after: Manifest) -> float:
    """Seconds from one commit to the next that none of ``LEARNING`` took.

    It is what is left of the time between the two, so that what runs between the stages counts too.
    """
    return _between(before, after) - sum(stages(after).get(name, 0.0) for name in LEARNING)


def share(before: Manifest, after: Manifest) -> float:
    """Orchestration as a share of the iteration without its evaluation."""
    return orchestration(before, after) / (_between(before, after) - stages(after).get("evaluate", 0.0))


def _between(before: Manifest, after: Manifest) -> float:
    return float(after.observed["timestamp"] - before.observed["timestamp"]) / 1000
