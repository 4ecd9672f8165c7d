"""Evidence of a lesson's gain over all looks of its life: bounds that hold at every look, however often one looks.

A look is one measurement of the mean paired gain. A test at 5 % at each look errs sooner or later, and so does one of
all looks together that is repeated. Here a bet is placed against "the gain is at most g" (Waudby-Smith and Ramdas,
"Estimating means of bounded random variables by betting", 2024): a capital of 1 is multiplied by 1 - b + b u / c for
each pair, where u >= 0 is its gain above the least possible gain, c what u would be at g, and b the share that is bet.
If the gain is at most g, the expected capital never grows; so it reaches 20 at any look with probability 1/20 at most
(Ville 1939). The lower bound is the largest g whose capital is 20 or more.

Pairs of several tasks may gain differently, as long as their mean gain is at most g (the mean of logarithms is at most
the logarithm of the mean).

Facts and policies change, and a gain with them. Therefore the capital is spread over all looks at which the gain may
have begun (an e-detector, Shin, Ramdas and Rinaldo 2024): evidence from before a change does not outweigh what follows.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from coevo.records.arrays import Floats
from coevo.records.entry import Verdict

BETS = np.array([1 / 8, 1 / 4, 1 / 2])
"""Shares that are bet, with a third of the capital each: small ones for noisy gains, large ones for sure ones."""

HALVINGS = 40
"""Steps of the search for a bound, which is exact to 2^-40 of the range of gains."""

TINY = 1e-12
"""Least mean of u against which is bet."""


def lower_bound(looks: Sequence[Verdict], confidence: float, span: float = 1.0) -> float:
    """Lower bound of the mean gain; all bounds of a life hold together with probability ``confidence``.

    Args:
        looks: measurements of a lesson, the oldest first; those without pairs say nothing.
        confidence: level, above 0.5 and below 1.
        span: highest minus lowest reward of an episode.

    Returns:
        The bound in units of reward; ``-span`` where nothing is known.
    """
    pairs = np.array([look.pairs for look in looks if look.pairs], float)
    found = np.array([(look.difference + span, look.stderr) for look in looks if look.pairs]).reshape(-1, 2)
    mean, second = found[:, 0], found[:, 0] ** 2 + (pairs - 1) * found[:, 1] ** 2
    return _largest(lambda gain: bool(log_capital(pairs, mean, second, gain + span) >= -np.log1p(-confidence)), span)


def upper_bound(looks: Sequence[Verdict], confidence: float, span: float = 1.0) -> float:
    """Upper bound of the mean gain, as ``lower_bound``; ``span`` where nothing is known."""
    return -lower_bound([replace(look, difference=-look.difference) for look in looks], confidence, span)


def log_capital(pairs: Floats, mean: Floats, second: Floats, least: float) -> Floats:
    """Logarithm of the capital of a bet against "the mean of u is at most ``least``", after the last look.

    A look is known by its moments. Of all samples with these, the one with values at 0 and at second / mean alone earns
    least, since the third derivative of the logarithm is positive; the capital of that one is counted. So a pair far
    above the others of a small look may lower the bound: it adds to the variance as well as to the mean.

    Args:
        pairs: (..., looks) pairs of each look of each life.
        mean: (..., looks) mean of u >= 0.
        second: (..., looks) mean of its square.
        least: largest mean under which the capital does not grow.

    Returns:
        (...) logarithm for each life.
    """
    share = np.divide(mean**2, second, out=np.zeros_like(mean), where=second > 0)[..., None]
    value = np.divide(second, mean, out=np.zeros_like(mean), where=mean > 0)[..., None]
    earned = (1 - share) * np.log1p(-BETS) + share * np.log(1 - BETS + BETS * value / max(least, TINY))
    earned *= pairs[..., None]
    weight = 6 / (np.pi * np.arange(1, mean.shape[-1] + 1)) ** 2
    since = np.cumsum(earned[..., ::-1, :], axis=-2)[..., ::-1, :] + np.log(weight / len(BETS))[:, None]
    begun: Floats = np.logaddexp.reduce(since.reshape(*mean.shape[:-1], -1), axis=-1, initial=-np.inf)
    found: Floats = np.logaddexp(begun, np.log1p(-weight.sum()))
    return found


def _largest(holds: Callable[[float], bool], span: float) -> float:
    """Largest gain for which a statement holds that holds below it, too; the least possible gain if it never does."""
    low, high = -span, span
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
