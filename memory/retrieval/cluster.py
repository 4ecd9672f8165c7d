"""Cluster-indexed retrieval (SLEA-RL Eq. 1 and 2): the pools of the observation's cluster, else the whole library."""

import numpy as np

from configs.retrieval import ClusterRetrievalConfig
from memory.library import Floats, Library, Rows
from memory.likeness import Likeness
from memory.retrieval.base import NEVER, Question, Score


class ClusterIndexed:
    """Entries of the cluster score their utility; without any, entries like the observation score their likeness."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._likeness = Likeness()
        self._numbers: dict[str, int] = {}

    def fit(self, library: Library) -> Score:
        """Read the texts that were never read."""
        numbers = self._read(library)

        def score(question: Question) -> Floats:
            pool = self._pool(library, question)
            if pool is not None:
                return pool
            question.tally["fallbacks"] += 1
            return self._like(question.text)[numbers[question.rows]]

        return score

    def _pool(self, library: Library, question: Question) -> Floats | None:
        """Utilities where the cluster has entries that may be returned; None where it has none."""
        clusters = library.clusters
        linked = () if clusters is None else clusters.entries(clusters.nearest(question.text))
        rows = [library.row_of[entry] for entry in linked if entry in library.row_of]
        if not rows:
            return None
        scores = np.full(len(library), NEVER)
        scores[rows] = library.utility[rows]
        pool = scores[question.rows]
        return pool if np.isfinite(pool).any() else None

    def _like(self, text: str) -> Floats:
        """By number of a text, its likeness where that is above the threshold."""
        scores = np.full(len(self._likeness), NEVER)
        found, likeness = self._likeness.above(text, np.nextafter(self._threshold, 2))
        scores[found] = likeness
        return scores

    def _read(self, library: Library) -> Rows:
        for text in (entry.strategy for entry in library.entries):
            if text not in self._numbers:
                self._numbers[text] = self._likeness.add(text)
        return np.array([self._numbers[entry.strategy] for entry in library.entries], np.intp)


def scorer(config: ClusterRetrievalConfig) -> ClusterIndexed:
    """The pools of clusters with the settings of a configuration."""
    return ClusterIndexed(config.threshold)
