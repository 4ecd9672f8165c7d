"""Differences between arms over the same seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy.stats import t


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of paired differences with its 95 % interval (Student's t, so that few seeds give wide intervals)."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Difference:
    """Ours minus theirs, seed by seed; at least two seeds."""
    gains = [a - b for a, b in zip(ours, theirs, strict=True)]
    half = float(t.ppf(0.975, len(gains) - 1)) * stdev(gains) / len(gains) ** 0.5
    return Difference(fmean(gains), fmean(gains) - half, fmean(gains) + half)
