"""Lower confidence bound of the mean gain that replay measured (``bank.admission.confidence``)."""

from math import inf

from coevo.configs.bank.admission import least_pairs
from coevo.records.entry import Verdict


def lower_bound(verdict: Verdict, confidence: float) -> float:
    """One-sided lower bound of the mean paired gain by Student's t, with n - 1 degrees of freedom.

    The bound is the mean minus t times its standard error (Student 1908). It holds for the replayed tasks: given these,
    pairs are independent draws.

    Rewards are often 0 or 1, so gains are -1, 0 or 1 and few differ from 0. Two things follow. Equal gains have no
    spread, and t would call even a single pair certain. Therefore fewer than ``least_pairs`` pairs have no bound, since
    an exact sign test could not reach the level either; from ``least_pairs`` on, equal gains are their own bound. And t
    is approximate: a candidate without any effect passes 0.95 in up to 5.6 % of replays of 8 pairs and up to 9.0 % of
    9 pairs, the worst case of 8 to 64, where every pair differs between its two sides; 0.99 in up to 3.6 %.

    Args:
        verdict: difference, standard error and number of pairs.
        confidence: level, above 0.5 and below 1.

    Returns:
        The bound in units of reward; ``-inf`` with fewer than ``least_pairs(confidence)`` pairs.
    """
    # Imported on use: the import takes longer than most commands.
    from scipy.special import stdtrit

    if verdict.pairs < least_pairs(confidence):
        return -inf
    return verdict.difference - float(stdtrit(verdict.pairs - 1, confidence)) * verdict.stderr
