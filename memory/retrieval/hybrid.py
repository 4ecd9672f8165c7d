"""Weighted sum of a lexical score and the cosine of embeddings, each divided by the question's best score.

CoEvo-RL compares such sums (its Table 2) without a formula. Dividing by the best makes both comparable; entries that
do not match, or have a negative cosine, score 0.
"""

import numpy as np

from coevo.memory.library import Library
from coevo.memory.retrieval.scorer import NEVER, BankQuery, Score, Scorer
from coevo.records.arrays import Floats


class Hybrid:
    """Scores between 0 and 1.

    Args:
        lexical: scorer by words.
        semantic: scorer by embedding.
        balance: weight of the semantic score, 0 to 1; the lexical score has the rest.
    """

    def __init__(self, lexical: Scorer, semantic: Scorer, balance: float) -> None:
        self._parts = ((lexical, 1 - balance), (semantic, balance))

    def fit(self, library: Library) -> Score:
        """Fit both scorers."""
        parts = [(scorer.fit(library), weight) for scorer, weight in self._parts]

        def score(question: BankQuery) -> Floats:
            total = np.zeros(len(question.rows))
            for part, weight in parts:
                total += weight * _relative(part(question))
            return np.where(total > 0, total, NEVER)

        return score


def _relative(scores: Floats) -> Floats:
    positive = np.maximum(scores, 0.0)
    best = positive.max(initial=0.0)
    return positive / best if best > 0 else positive
