"""Cost of a run up to each revision: episodes and tokens played for learning, and seconds of learning.

All cost counts, including that of revisions before a rollback.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from coevo.lineage.revision.manifest import Manifest

SECONDS = "cost/seconds/"
"""Prefix of the seconds of a stage."""
KINDS = ("episodes", "tokens", "seconds")
OUTSIDE = ("evaluate", "internalization", "gate panels", "initial policy", "play ahead", "commit", "publish")
"""Stages that do not count as learning time: those that measure or prepare, and those that another stage waits for, so
that their seconds are counted there."""


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


def learning_seconds(manifest: Manifest) -> float:
    """Seconds of all stages except ``OUTSIDE``."""
    return sum(spent for name, spent in stages(manifest).items() if name not in OUTSIDE)


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
