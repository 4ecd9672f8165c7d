"""Structured TF-IDF (CoEvo-RL Eq. 2): s(q, e) = sum over fields f of w_f cos(tfidf_f(q), tfidf_f(e)).

Every field has its own vocabulary of lower-case words and smoothed inverse document frequencies
ln((1 + n) / (1 + df)) + 1 over all n active entries, whatever their scope.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from coevo.configs.bank.retrieval_config import TfidfConfig, TfidfEmbeddingConfig, TfidfSimilarity
from coevo.memory.library import Library
from coevo.memory.retrieval import embedding
from coevo.memory.retrieval.hybrid import Hybrid
from coevo.memory.retrieval.lexicon import CHUNK, Counts, Lexicon
from coevo.memory.retrieval.postings import Postings
from coevo.memory.retrieval.scorer import NEVER
from coevo.memory.retrieval.segment import positions
from coevo.records.arrays import Floats, Indices, ShortIntegers


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
        return Postings(counts, _TfidfWeights(np.array([*self._weights.values()]), idf, counts), self._missing)


class _TfidfWeights:
    """Product of two parts of a cosine, that of the question and that of an entry.

    Args:
        fields: (fields,) weights.
        idf: (terms,) inverse document frequencies.
        counts: words of the library.
    """

    def __init__(self, fields: Floats, idf: Floats, counts: Counts) -> None:
        self._fields, self._idf, self._counts = fields, idf, counts
        # (numbers, fields) norms; computed when first needed, since those of all entries change with every idf.
        self._norms = np.full(counts.sizes.shape, np.nan)

    def question(self, words: Sequence[int], times: Sequence[int]) -> tuple[Sequence[int], Sequence[float]]:
        """A key is a term, since each field has a norm of its own; its factor is the question's part of the cosine."""
        numbers = np.array(words, np.intp)
        rows, fields = np.nonzero(self._counts.frequency.reshape(-1, len(self._fields))[numbers])
        terms = numbers[rows] * len(self._fields) + fields
        values = np.array(times)[rows] * self._idf[terms]
        norms = np.sqrt(np.bincount(fields, values**2, len(self._fields)))
        return terms.tolist(), (values / norms[fields]).tolist()

    def terms(self, keys: Indices) -> tuple[Indices, Indices]:
        """The keys themselves."""
        return keys, np.arange(len(keys))

    def values(self, terms: Indices) -> Floats:
        """Weight of the field, times idf."""
        return self._fields[terms % len(self._fields)] * self._idf[terms]

    def entries(self, numbers: ShortIntegers, fields: Indices, times: ShortIntegers) -> Floats:
        """Count over the norm of the entry's field."""
        norms = self._norms[numbers, fields]
        if np.isnan(norms.sum()):
            new = np.unique(numbers[np.isnan(norms)])
            for first in range(0, len(new), CHUNK):
                self._compute(new[first : first + CHUNK])
            norms = self._norms[numbers, fields]
        values: Floats = times / norms
        return values

    def _compute(self, numbers: ShortIntegers) -> None:
        """Norms of some entries; each is summed in the order of its text, whatever the other entries."""
        counts = self._counts
        at, _ = positions(counts.starts[numbers], counts.starts[numbers + 1])
        squares = (counts.times[at] * self._idf[counts.terms[at]]) ** 2
        sizes = counts.sizes[numbers].ravel()
        norms, some = np.zeros(len(sizes)), np.flatnonzero(sizes)
        norms[some] = np.sqrt(np.add.reduceat(squares, (sizes.cumsum() - sizes)[some]))
        self._norms[numbers] = norms.reshape(-1, len(self._fields))


def scorer(config: TfidfConfig | TfidfEmbeddingConfig | TfidfSimilarity) -> Tfidf:
    """TF-IDF with the weights of a configuration; as a similarity, a mean that is 0 if no word is shared."""
    weights = dict(config.weights)
    if not isinstance(config, TfidfSimilarity):
        return Tfidf(weights)
    total = sum(weights.values())
    return Tfidf({name: weight / total for name, weight in weights.items()}, missing=0.0)


def with_embedding(config: TfidfEmbeddingConfig) -> Hybrid:
    """TF-IDF and embedding together, see ``coevo.memory.retrieval.hybrid``."""
    return Hybrid(scorer(config), embedding.scorer(config), config.balance)
