"""Weighted sum of a lexical score and of an embedding's cosine, each divided by the best of the question.

CoEvo-RL compares such sums (its Table 2) without a formula. Dividing by the best makes the two comparable; what the
question does not concern, or is dissimilar to, has 0.
"""

import numpy as np

from memory.library import Floats, Library
from memory.retrieval.base import NEVER, Question, Score, Scorer


class Hybrid:
    """Scores between 0 and 1.

    Args:
        lexical: scores by words.
        semantic: scores by embedding.
        balance: weight of the latter, 0 to 1; the rest is the former's.
    """

    def __init__(self, lexical: Scorer, semantic: Scorer, balance: float) -> None:
        self._parts = ((lexical, 1 - balance), (semantic, balance))

    def fit(self, library: Library) -> Score:
        """Fit both."""
        parts = [(scorer.fit(library), weight) for scorer, weight in self._parts]

        def score(question: Question) -> Floats:
            total = np.zeros(len(question.rows))
            for part, weight in parts:
                total += weight * _relative(part(question))
            return np.where(total > 0, total, NEVER)

        return score


def _relative(scores: Floats) -> Floats:
    positive = np.maximum(scores, 0.0)
    best = positive.max(initial=0.0)
    return positive / best if best > 0 else positive
