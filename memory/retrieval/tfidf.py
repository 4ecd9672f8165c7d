"""Structured TF-IDF (CoEvo-RL Eq. 2): s(q, e) = sum over fields f of w_f cos(tfidf_f(q), tfidf_f(e)).

Every field has its own vocabulary of lower-case words and smoothed inverse document frequencies
ln((1 + n) / (1 + df)) + 1 over all n active entries, whatever their scope.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from coevo.configs.bank.retrieval import TfidfConfig, TfidfEmbeddingConfig, TfidfSimilarity
from coevo.memory.catalogue import Rows
from coevo.memory.library import Floats, Library
from coevo.memory.retrieval.base import NEVER
from coevo.memory.retrieval.lexicon import CHUNK, Asked, Counts, Lexicon
from coevo.memory.retrieval.postings import Postings
from coevo.memory.retrieval.segment import Ints


class Tfidf:
    """Scores between 0 and the sum of the weights.

    Args:
        weights: weights of the entry's fields.
        missing: score of entries without a word of the question.
    """

    def __init__(self, weights: Mapping[str, float], missing: float = NEVER) -> None:
        self._weights = {name: weight for name, weight in weights.items() if weight > 0}
        self._missing = missing
        self._lexicon = Lexicon(self._weights)

    def fit(self, library: Library) -> Postings:
        """Fit the inverse document frequencies."""
        counts = self._lexicon.count(library)
        idf = np.log((1 + len(library)) / (1 + counts.frequency)) + 1
        weights = _Weights(np.array([*self._weights.values()]), idf, _norms(counts, idf))
        return Postings(counts, weights, self._missing)


@dataclass(frozen=True)
class _Weights:
    """Product of two parts of a cosine, that of the question and that of an entry.

    Attributes:
        fields: (fields,) weights.
        idf: (terms,) inverse document frequencies.
        norms: (numbers, fields) norms of the entries.
    """

    fields: Floats
    idf: Floats
    norms: Floats

    @property
    def merged(self) -> bool:
        """False: each field has a norm of its own."""
        return False

    def question(self, asked: Asked) -> Floats:
        """The question's part of the cosine."""
        values = asked.times * self.idf[asked.terms]
        norms = np.sqrt(np.bincount(asked.fields, values**2, len(self.fields)))
        return values / norms[asked.fields]

    def terms(self, asked: Asked) -> Floats:
        """Weight of the field, times idf."""
        return self.fields[asked.fields] * self.idf[asked.terms]

    def entries(self, numbers: Ints, fields: Rows, times: Ints) -> Floats:
        """Count over the norm of the entry's field."""
        return times / self.norms[numbers, fields]


def _norms(counts: Counts, idf: Floats) -> Floats:
    """(numbers, fields) norms; each is summed in the order of its text, whatever the other entries."""
    norms = np.zeros(counts.sizes.shape)
    for first in range(0, len(norms), CHUNK):
        sizes = counts.sizes[first : first + CHUNK].ravel()
        held = slice(counts.starts[first], counts.starts[min(first + CHUNK, len(norms))])
        squares = (counts.times[held] * idf[counts.terms[held]]) ** 2
        some = np.flatnonzero(sizes)
        norms[first : first + CHUNK].flat[some] = np.sqrt(np.add.reduceat(squares, (sizes.cumsum() - sizes)[some]))
    return norms


def scorer(config: TfidfConfig | TfidfEmbeddingConfig | TfidfSimilarity) -> Tfidf:
    """TF-IDF with the weights of a configuration; as a similarity, a mean that is 0 if no word is shared."""
    weights = dict(config.weights)
    if not isinstance(config, TfidfSimilarity):
        return Tfidf(weights)
    total = sum(weights.values())
    return Tfidf({name: weight / total for name, weight in weights.items()}, missing=0.0)
