"""SimUtil-UCB (RetroAgent section 3.3): alpha s + (1 - alpha) (u + kappa sqrt(ln N / n)).

s is the similarity, u the utility and n the visits of an entry; N is the sum of the visits of all active entries.
"""

import numpy as np

from coevo.configs.bank.retrieval_config import SimUtilUcbConfig
from coevo.memory.library import Library
from coevo.memory.retrieval.scorer import NEVER, BankQuery, Score, Scorer, scorer_of
from coevo.records.arrays import Floats


class SimUtilUcb:
    """Entries with a similarity below the threshold do not match."""

    def __init__(self, similarity: Scorer, threshold: float, alpha: float, kappa: float) -> None:
        self._similarity = similarity
        self._threshold, self._alpha, self._kappa = threshold, alpha, kappa

    def fit(self, library: Library) -> Score:
        """Fit the similarity, and compute the terms that do not depend on the question."""
        similarity = self._similarity.fit(library)
        worth = upper_bounds(library.utility, library.visits, self._kappa)

        def score(question: BankQuery) -> Floats:
            relevance = similarity(question)
            scores = self._alpha * relevance + (1 - self._alpha) * worth[question.rows]
            return np.where(relevance >= self._threshold, scores, NEVER)

        return score


def upper_bounds(utility: Floats, visits: Floats, kappa: float) -> Floats:
    """u + kappa sqrt(ln N / n) of every entry; all ``visits`` are at least 1."""
    bonus: Floats = np.sqrt(np.log(visits.sum()) / visits)
    return utility + kappa * bonus


def scorer(config: SimUtilUcbConfig) -> SimUtilUcb:
    """SimUtil-UCB with the settings of a configuration."""
    return SimUtilUcb(scorer_of(config.similarity), config.threshold, config.alpha, config.kappa)
