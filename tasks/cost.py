"""Cost of a run: episodes and tokens played for learning, seconds of learning, and wall-clock seconds by part.

All cost counts, including that of revisions before a rollback. Wall-clock seconds are those of the processes that ran
the loop, from the opening of the run to its last committed revision: preparation and evaluation count, and idle time
between two processes does not. Command line, report, MLflow and Prefect show these seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from coevo.lineage.revision.manifest import Manifest

SECONDS = "cost/seconds/"
"""Prefix of the seconds of a stage."""
KINDS = ("episodes", "tokens", "seconds")
BESIDE = ("play ahead", "commit", "publish")
"""Stages that run beside the next iteration: what the run waits for of them counts as ``other``."""
PARALLEL = (*BESIDE, "gate episodes", "gate advantages", "gate candidates")
"""These, and the gates, which run beside the steps that use their batch."""
OF_PART = {
    "preparation": "preparation", "initial policy": "preparation", "rollout": "rollout", "sample tasks": "rollout",
    "shape": "update", "advantage": "update", "update": "update", "write candidates": "writing", "judge": "judging",
    "trial": "judging", "admit": "judging", "update statistics": "judging", "retire": "retiring",
    "evaluate": "evaluation", "gate panels": "evaluation", "internalization": "internalization",
}  # fmt: skip
"""Part of a run's time that each stage belongs to."""
TIME_PARTS = (*dict.fromkeys(OF_PART.values()), "other")
LEARNING = ("rollout", "update", "writing", "judging", "retiring")
"""Parts that count as learning time; the others measure or prepare."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Cost; episodes and tokens are None for revisions without these counts."""

    episodes: int | None = 0
    tokens: int | None = 0
    seconds: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        episodes, tokens = _sum(self.episodes, other.episodes), _sum(self.tokens, other.tokens)
        return Spent(episodes, tokens, self.seconds + other.seconds)

    def of(self, kind: str) -> float | None:
        """Cost of one of ``KINDS``."""
        found: float | None = getattr(self, kind)
        return found


def spending(history: Sequence[Manifest]) -> list[Spent]:
    """Cost up to and including each revision."""
    return list(accumulate(_spent(manifest) for manifest in history))


def stages(manifest: Manifest) -> dict[str, float]:
    """Seconds of each stage of this revision."""
    found = {name.removeprefix(SECONDS): spent for name, spent in manifest.rates.items() if name.startswith(SECONDS)}
    return {name: spent for name, spent in found.items() if name != "wall"}


def wall_seconds(manifest: Manifest) -> float:
    """Wall-clock seconds of this revision."""
    return float(manifest.rates.get(f"{SECONDS}wall", 0.0))


def time_by_part(history: Sequence[Manifest]) -> dict[str, float]:
    """Wall-clock seconds of the revisions by part, in the order of ``TIME_PARTS``; parts without any are left out.

    ``other`` is what no stage took, such as waiting for a commit. The parts sum to the total of ``wall_seconds``.
    """
    spent = dict.fromkeys(TIME_PARTS, 0.0)
    for manifest in history:
        timed = [(stage, seconds) for stage, seconds in stages(manifest).items() if stage not in PARALLEL]
        for stage, seconds in timed:
            spent[OF_PART.get(stage, "other")] += seconds
        spent["other"] += wall_seconds(manifest) - sum(seconds for _, seconds in timed)
    return {part: seconds for part, seconds in spent.items() if seconds > 0}


def time_line(history: Sequence[Manifest]) -> str:
    """Wall-clock seconds of the revisions in one line, with the parts that take at least a hundredth of them."""
    total, parts = sum(map(wall_seconds, history)), time_by_part(history)
    shown = [f"{part} {seconds:,.0f}" for part, seconds in parts.items() if seconds >= total / 100]
    return f"{total:,.0f} s" + (f": {', '.join(shown)}" if shown else "")


def learning_seconds(manifest: Manifest) -> float:
    """Wall-clock seconds of the parts in ``LEARNING``."""
    spent = time_by_part([manifest])
    return sum(spent.get(part, 0.0) for part in LEARNING)


def played(manifest: Manifest) -> bool:
    """Return True if the revision comes from iterations: it is no start, no rollback and not made by hand.

    A rollback repeats the metrics of the restored revision, without having played anything.
    """
    return manifest.parent is not None and manifest.restored_from is None and not is_by_hand(manifest)


def _spent(manifest: Manifest) -> Spent:
    if not played(manifest):
        return Spent()
    episodes, tokens = (manifest.metrics.get(f"cost/{kind}") for kind in ("episodes", "tokens"))
    return Spent(_whole(episodes), _whole(tokens), learning_seconds(manifest))


def is_by_hand(manifest: Manifest) -> bool:
    """Return True if a command imported, retired or approved entries: such a revision has no episodes."""
    return "bank/imported" in manifest.metrics or not manifest.state.keys().isdisjoint(("retired", "approval"))


def _whole(count: float | None) -> int | None:
    return None if count is None else int(count)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
