"""Okapi BM25 over an entry's fields: s(q, e) = sum over fields f of w_f BM25_f(q, e).

BM25_f sums, over the words of the question, ln(1 + (n - df + 1/2) / (df + 1/2)) t (k1 + 1) / (t + k1 (1 - b + b l / L))
for a word that the field contains t times, where l is the length of the field and L its mean over all n active entries.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coevo.configs.bank.retrieval_config import Bm25Config, Bm25EmbeddingConfig
from coevo.memory.library import Library
from coevo.memory.retrieval import embedding
from coevo.memory.retrieval.hybrid import Hybrid
from coevo.memory.retrieval.lexicon import Lexicon
from coevo.memory.retrieval.postings import Postings
from coevo.records.arrays import Floats, Indices, ShortIntegers


class Bm25:
    """Scores above 0; entries without a word of the question do not match."""

    def __init__(self, config: Bm25Config | Bm25EmbeddingConfig) -> None:
        self._weights = {name: weight for name, weight in config.weights if weight > 0}
        self._k1, self._b = config.k1, config.b
        self._lexicon = Lexicon(self._weights)

    def fit(self, library: Library) -> Postings:
        """Fit the inverse document frequencies and the mean lengths."""
        counts = self._lexicon.count(library)
        idf = np.log(1 + (len(library) - counts.frequency + 0.5) / (counts.frequency + 0.5))
        means = np.maximum(counts.words / len(library), np.finfo(float).tiny)
        weights = np.array([*self._weights.values()])
        return Postings(counts, _Bm25Weights(weights, idf, counts.lengths, means, self._k1, self._b))


@dataclass(frozen=True)
class _Bm25Weights:
    """BM25 of a term in an entry.

    Attributes:
        fields: (fields,) weights.
        idf: (terms,) inverse document frequencies.
        lengths: (numbers, fields) words.
        means: (fields,) mean lengths.
        k1: saturation of repeated words.
        b: penalty for long fields.
    """

    fields: Floats
    idf: Floats
    lengths: ShortIntegers
    means: Floats
    k1: float
    b: float

    def question(self, words: Sequence[int], times: Sequence[int]) -> tuple[Sequence[int], Sequence[float]]:
        """A key is a word, in all fields; its factor is the count in the question."""
        return words, times

    def terms(self, keys: Indices) -> tuple[Indices, Indices]:
        """The word in each field."""
        fields = len(self.fields)
        return (keys[:, None] * fields + np.arange(fields)).ravel(), np.arange(len(keys)).repeat(fields)

    def values(self, terms: Indices) -> Floats:
        """Weight of the field, times idf."""
        return self.fields[terms % len(self.fields)] * self.idf[terms]

    def entries(self, numbers: ShortIntegers, fields: Indices, times: ShortIntegers) -> Floats:
        """Saturated count."""
        relative = self.lengths[numbers, fields] / self.means[fields]
        return times * (self.k1 + 1) / (times + self.k1 * (1 - self.b + self.b * relative))


def scorer(config: Bm25Config | Bm25EmbeddingConfig) -> Bm25:
    """BM25 with the settings of a configuration."""
    return Bm25(config)


def with_embedding(config: Bm25EmbeddingConfig) -> Hybrid:
    """BM25 and embedding together, see ``coevo.memory.retrieval.hybrid``."""
    return Hybrid(scorer(config), embedding.scorer(config), config.balance)
