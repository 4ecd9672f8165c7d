"""Sums over the words of a question: the score of TF-IDF and of BM25 in every entry, or of the best entries alone.

An entry's score is added up in the order of the question's terms, whichever way it is found, and its parts depend on
the library alone. Therefore scores do not depend on how the library came about, in one step or in many.

A question with many postings is answered without reading most of them, see ``maxscore``.
"""

from typing import Protocol

import numpy as np

from coevo.memory.catalogue import Rows
from coevo.memory.library import Floats
from coevo.memory.retrieval.base import NEVER, Question
from coevo.memory.retrieval.lexicon import Asked, Counts
from coevo.memory.retrieval.maxscore import TermEntries, candidates, scores_of
from coevo.memory.retrieval.segment import Ints, positions

MANY = 1 << 15
"""Postings of a question that are all read, which costs less than bounds."""
FEW = 16
"""Entries per posting from which on the entries found are sorted rather than all sums searched."""


class Weights(Protocol):
    """Score of a term in an entry, as a product."""

    def factors(self, asked: Asked) -> Floats:
        """(terms,) factors that depend on the question and the term; above 0."""
        ...

    def values(self, numbers: Ints, fields: Rows, times: Ints) -> Floats:
        """(postings,) factors that depend on the entry's field and the count of the term in it; above 0."""
        ...


class Postings:
    """Scores of a library.

    Args:
        counts: words of the library.
        weights: their weights.
        missing: score of entries without a word of the question.
    """

    def __init__(self, counts: Counts, weights: Weights, missing: float = NEVER) -> None:
        self._counts, self._weights, self._missing = counts, weights, missing
        self._whole = len(counts.numbers) == len(counts.row_of)
        self._terms: dict[int, TermEntries] = {}

    def __call__(self, question: Question) -> Floats:
        """(rows,) scores."""
        asked = self._counts.asked(question.text, question.without)
        scores = self._sums(*self._read(asked, self._weights.factors(asked)))[question.rows]
        return np.where(scores > 0, scores, self._missing)

    def best(self, question: Question, k: int) -> tuple[Rows, Floats]:
        """Positions in ``question.rows``, ascending, and scores; see ``BestScore``."""
        asked = self._counts.asked(question.text, question.without)
        factors = self._weights.factors(asked)
        if sum(int((ends - starts).sum()) for starts, ends in self._bounds(asked.terms)) <= MANY:
            return self._all(question.rows, asked, factors)
        pairs = zip(asked.terms.tolist(), asked.fields.tolist(), factors.tolist(), strict=True)
        terms = [self._term(term, field).times(factor) for term, field, factor in pairs]
        pool = np.zeros(len(self._counts.row_of), bool)
        pool[self._counts.numbers[question.rows]] = True
        numbers = candidates(terms, pool, max(k, 1))
        scores = scores_of(numbers, terms)
        places = np.searchsorted(question.rows, self._counts.row_of[numbers].astype(np.intp))
        order = places.argsort()
        return places[order], scores[order]

    def _bounds(self, terms: Rows) -> list[tuple[Rows, Rows]]:
        return [segment.bounds(terms) for segment in self._counts.segments]

    def _read(self, asked: Asked, factors: Floats) -> tuple[Ints, Floats]:
        """Row and part of the score of every posting of the question, in the order of its terms."""
        rows, parts = [], []
        for segment, (starts, ends) in zip(self._counts.segments, self._bounds(asked.terms), strict=True):
            at, term = positions(starts, ends), np.repeat(np.arange(len(starts)), ends - starts)
            numbers = segment.numbers[at]
            rows.append(self._counts.row_of[numbers])
            parts.append(factors[term] * self._weights.values(numbers, asked.fields[term], segment.times[at]))
        found, values = (rows[0], parts[0]) if len(rows) == 1 else (np.concatenate(rows), np.concatenate(parts))
        return (found, values) if self._whole else (found[found >= 0], values[found >= 0])

    def _sums(self, found: Ints, parts: Floats) -> Floats:
        """(entries,) scores of the library."""
        return np.bincount(found, parts, len(self._counts.numbers)).astype(float, copy=False)

    def _all(self, rows: Rows, asked: Asked, factors: Floats) -> tuple[Rows, Floats]:
        """Positions and scores of all entries that have a word of the question."""
        found, parts = self._read(asked, factors)
        sums = self._sums(found, parts)
        if len(rows) > FEW * len(found):
            found = np.sort(found)
            rows_found = found[np.flatnonzero(np.diff(found, prepend=-1))].astype(np.intp)
            places = np.minimum(np.searchsorted(rows, rows_found), len(rows) - 1)
            places = places[rows[places] == rows_found]
        else:
            places = np.flatnonzero(sums[rows] > 0)
        return places, sums[rows[places]]

    def _term(self, term: int, field: int) -> TermEntries:
        """The entries of a term; read once per library."""
        if term not in self._terms:
            bounds = [(segment, *segment.bounds(np.array(term))) for segment in self._counts.segments]
            numbers = np.concatenate([segment.numbers[start:end] for segment, start, end in bounds])
            times = np.concatenate([segment.times[start:end] for segment, start, end in bounds])
            active = self._counts.row_of[numbers] >= 0
            numbers = numbers[active]
            values = self._weights.values(numbers, np.array(field), times[active])
            self._terms[term] = TermEntries(numbers, values, float(values.max(initial=0.0)))
        return self._terms[term]
