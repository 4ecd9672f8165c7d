"""95 % intervals of means, of mean differences and of shares, and tests of a fall."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean, stdev

NORMAL = 1.96
"""97.5 % quantile of the normal distribution: half the width of a 95 % interval, in standard errors."""

ROUNDING = 1e-9
"""Gains that differ by less, relative to the largest possible one, are equal."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean difference or a share, and the ends of its interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


def around(mean: float, stderr: float) -> Interval:
    """Normal 95 % interval of a mean with this standard error."""
    return Interval(mean, mean - NORMAL * stderr, mean + NORMAL * stderr)


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """95 % interval of the mean paired difference, ours minus theirs, as ``of_gains``.

    Args:
        ours: one value per pair, at least two; outcomes of tasks are 0 or 1. Values that differ by more are rewards:
            the largest difference among them counts as the largest possible one.
        theirs: values of the other side, in the same order.

    Raises:
        ValueError: the two sides differ in length.
        StatisticsError: there are fewer than two pairs.
    """
    gains = [float(a) - float(b) for a, b in zip(ours, theirs, strict=True)]
    return of_gains(fmean(gains), stdev(gains) / len(gains) ** 0.5, len(gains), max(1.0, *map(abs, gains)))


def paired_success(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """``paired`` for outcomes or success rates, between 0 and 1: the interval holds no impossible difference."""
    found = paired(ours, theirs)
    return Interval(found.mean, max(-1.0, found.low), min(1.0, found.high))


def of_gains(mean: float, stderr: float, pairs: int, most: float = 1.0) -> Interval:
    """95 % interval of a mean paired gain by Student's t, with pairs - 1 degrees of freedom.

    Equal gains have no spread, and t would call them certain. Theirs is the interval of a share, as by Clopper and
    Pearson: after n equal gains, at most 1 - 0.025^(1/n) of further pairs gain otherwise, and between -most and most.
    It is never empty, whatever the number of pairs.

    Args:
        mean: mean gain.
        stderr: its standard error.
        pairs: number of pairs; without any, the interval holds every gain.
        most: largest gain that a pair can have.
    """
    # Imported on use: the import takes longer than most commands.
    from scipy.special import stdtrit

    if pairs > 1 and stderr > ROUNDING * most:
        half = float(stdtrit(pairs - 1, 0.975)) * stderr
        return Interval(mean, mean - half, mean + half)
    other = 1 - 0.025 ** (1 / pairs) if pairs else 1.0
    return Interval(mean, mean - other * (mean + most), mean + other * (most - mean))


def of_share(share: float, count: int) -> Interval:
    """Wilson's 95 % interval of a share of ``count`` trials, at least one; it is never empty, at 0 and 1 either.

    It also holds for the mean of values between 0 and 1, which vary no more than outcomes with the same mean: it is
    then too wide rather than too narrow.
    """
    weight = NORMAL**2 / count
    middle = (share + weight / 2) / (1 + weight)
    half = (share * (1 - share) * weight + weight**2 / 4) ** 0.5 / (1 + weight)
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def student(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """95 % interval of ours minus theirs by Student's t, so that few pairs give wide intervals.

    Args:
        ours: one value per pair, at least two.
        theirs: values of the other side, in the same order.
    """
    # Imported on use: the import takes longer than most commands.
    from scipy.special import stdtrit

    gains = [float(a) - float(b) for a, b in zip(ours, theirs, strict=True)]
    mean, half = fmean(gains), float(stdtrit(len(gains) - 1, 0.975)) * stdev(gains) / len(gains) ** 0.5
    return Interval(mean, mean - half, mean + half)


@dataclass(frozen=True, slots=True)
class Rate:
    """A success rate over tasks.

    Attributes:
        mean: mean of the tasks' rates.
        stderr: its standard error over tasks.
        tasks: number of tasks, at least two.
    """

    mean: float
    stderr: float
    tasks: int

    def variance(self, pooled: float) -> float:
        """Variance of the mean, with one more task that varies as much as one with this rate can.

        Few tasks may agree by chance, and would have no variance at all.
        """
        return ((self.tasks - 1) * self.tasks * self.stderr**2 + pooled * (1 - pooled)) / self.tasks**2


def chance_of_fall(before: Rate, after: Rate) -> float:
    """Probability of such a fall between batches of different tasks if nothing changed, by Welch's t."""
    # Imported on use: the import takes longer than most commands.
    from scipy.special import stdtr

    pooled = (before.mean + after.mean) / 2
    parts = [(rate.variance(pooled), rate.tasks - 1) for rate in (before, after)]
    whole = sum(variance for variance, _ in parts)
    if not whole:
        return 1.0
    freedom = whole**2 / sum(variance**2 / count for variance, count in parts)
    return float(stdtr(freedom, (after.mean - before.mean) / whole**0.5))


def chance_of_losses(before: str, after: str) -> float:
    """Probability of as many losses among paired outcomes that differ, by the sign test.

    Args:
        before: ``1`` for a success, ``0`` for a failure, one for each task; other marks are left out.
        after: likewise, in the same order.
    """
    pairs = list(zip(before, after, strict=True))
    lost, won = pairs.count(("1", "0")), pairs.count(("0", "1"))
    return float(sum(comb(lost + won, count) for count in range(lost, lost + won + 1)) / 2 ** (lost + won))


def chance_beyond(values: Sequence[float], bound: float) -> float:
    """Two-sided probability of a mean as far from a bound by chance, by Student's t; equal values by the sign test.

    Args:
        values: at least two.
        bound: mean that is true if nothing is found.
    """
    # Imported on use: the import takes longer than most commands.
    from scipy.special import stdtr

    away, spread = fmean(values) - bound, stdev(values) / len(values) ** 0.5
    if spread <= ROUNDING * max(1.0, *map(abs, values)):
        return 2.0 ** (1 - len(values)) if abs(away) > ROUNDING else 1.0
    return float(2 * stdtr(len(values) - 1, -abs(away) / spread))


def holm(chances: Sequence[float]) -> list[float]:
    """Probabilities of several tests, adjusted so that all together reject a true one as rarely as one (Holm 1979)."""
    adjusted, largest = [1.0] * len(chances), 0.0
    for rank, number in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        largest = max(largest, min(1.0, (len(chances) - rank) * chances[number]))
        adjusted[number] = largest
    return adjusted


def of_mean(values: Sequence[float]) -> Interval:
    """Mean of at least two values with its 95 % interval by Student's t."""
    return student(values, [0.0] * len(values))
