"""Cluster-indexed retrieval (SLEA-RL Eq. 1 and 2): the pools of the observation's cluster, else the whole library."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from coevo.configs.bank.retrieval_config import ClusterRetrievalConfig
from coevo.memory.library import Library, PerEntry
from coevo.memory.retrieval.scorer import NEVER, BankQuery, Score
from coevo.memory.similarity import SimilarityIndex
from coevo.records.arrays import Floats, Indices
from coevo.records.entry import Entry

REMEMBERED = 256
"""Observations whose similarities to the library are cached: rooms of several houses look alike."""


class ClusterIndexed:
    """Entries of the cluster score their utility; if it has none, similar entries score their similarity."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._texts = SimilarityIndex()
        self._known: dict[str, int] = {}
        self._numbers = PerEntry(self._read)

    def fit(self, library: Library) -> Score:
        """Read the texts that are new."""
        numbers, pools = self._numbers.of(library.catalogue), _Pools(library)
        like = lru_cache(maxsize=REMEMBERED)(self._like)

        def score(question: BankQuery) -> Floats:
            pool = pools.of(question.text)[question.rows]
            if pool.max(initial=NEVER) > NEVER:
                return pool
            question.tally["fallbacks"] += 1
            return like(question.text)[numbers[question.rows]]

        return score

    def _like(self, text: str) -> Floats:
        """Similarity by number of text; ``NEVER`` unless above the threshold."""
        scores = np.full(len(self._texts), NEVER)
        found, similarities = self._texts.above(text, np.nextafter(self._threshold, 2))
        scores[found] = similarities
        return scores

    def _read(self, entries: Sequence[Entry]) -> Indices:
        for text in (entry.strategy for entry in entries):
            if text not in self._known:
                self._known[text] = self._texts.add(text)
        return np.array([self._known[entry.strategy] for entry in entries], np.intp)


class _Pools:
    """Utilities of each cluster's entries, (library,); cached while no link changes."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._nothing = np.full(len(library), NEVER)
        self._linkings = -1
        self._read: dict[int, Floats] = {}

    def of(self, observation: str) -> Floats:
        """(library,) utilities of the entries of the observation's cluster, ``NEVER`` for all others."""
        clusters = self._library.clusters
        if clusters is None:
            return self._nothing
        if clusters.linkings != self._linkings:
            self._linkings = clusters.linkings
            self._read.clear()
        cluster = clusters.nearest(observation)
        if cluster not in self._read:
            self._read[cluster] = self._utilities(clusters.entries(cluster))
        return self._read[cluster]

    def _utilities(self, linked: Iterable[str]) -> Floats:
        rows = [self._library.row_of[entry] for entry in linked if entry in self._library.row_of]
        scores = self._nothing.copy()
        scores[rows] = self._library.utility[rows]
        return scores


def scorer(config: ClusterRetrievalConfig) -> ClusterIndexed:
    """The pools of clusters with the settings of a configuration."""
    return ClusterIndexed(config.threshold)
