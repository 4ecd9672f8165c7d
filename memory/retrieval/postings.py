"""Scores of TF-IDF and BM25: sums over the words of a question, of every entry or of those that can be the best.

The parts of a score depend on the library and the question alone, and are added up in one order: rare words in the
order of the question, then common ones. Therefore scores do not depend on how the library came about, in one step or
in many, and an entry has the same score whichever way it is found.
"""

from typing import Protocol

import numpy as np

from coevo.memory.catalogue import Rows
from coevo.memory.library import Floats
from coevo.memory.retrieval import maxscore
from coevo.memory.retrieval.base import NEVER, Question
from coevo.memory.retrieval.lexicon import Asked, Counts
from coevo.memory.retrieval.maxscore import Entries, Part, Pool, Sum, leading
from coevo.memory.retrieval.segment import Ints, Segment, positions

COMMON = 128
"""A word with more entries is common: their values are computed once per library, not once per question."""
MANY = 1 << 18
"""Postings of a question that are all read, which costs less than bounds."""
FEW = 16
"""Entries per posting from which on the entries found are sorted rather than all sums searched."""

NONE = np.zeros(0, np.int32)


class Weights(Protocol):
    """Score of a term in an entry, as a product of three factors above 0."""

    @property
    def merged(self) -> bool:
        """True if the factor of the question is the same in all fields, so that fields can be added up beforehand."""
        ...

    def question(self, asked: Asked) -> Floats:
        """(terms,) factors that depend on the question."""
        ...

    def terms(self, asked: Asked) -> Floats:
        """(terms,) factors that depend on the term and its field."""
        ...

    def entries(self, numbers: Ints, fields: Rows, times: Ints) -> Floats:
        """(postings,) factors that depend on the entry's field and the count of the term in it."""
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
        self._active = counts.row_of >= 0
        self._whole = len(counts.numbers) == len(counts.row_of)
        self._common: dict[int, Entries] = {}

    def __call__(self, question: Question) -> Floats:
        """(rows,) scores."""
        scores = self._sum(question).all()[self._counts.numbers[question.rows]]
        return np.where(scores > 0, scores, self._missing)

    def best(self, question: Question, k: int) -> tuple[Rows, Floats]:
        """Positions in ``question.rows``, ascending, and scores; see ``BestScore``."""
        total, rows, numbers = self._sum(question), question.rows, self._counts.numbers
        whole = len(rows) == len(numbers)
        if len(total) > MANY:
            found, scores = maxscore.best(total, None if whole else self._pool(rows), max(k, 1))
        else:
            sums = total.all()
            if not whole:
                places = leading(sums[numbers[rows]], max(k, 1)).astype(np.intp)
                return places, sums[numbers[rows[places]]]
            found = leading(sums, max(k, 1)) if len(total) * FEW > total.size else total.entries()
            scores = sums[found]
        places = self._counts.row_of[found].astype(np.intp)
        if not whole:
            places = np.searchsorted(rows, places)
        order = places.argsort()
        return places[order], scores[order]

    def _pool(self, rows: Rows) -> Pool:
        pool = np.zeros(len(self._active), bool)
        pool[self._counts.numbers[rows]] = True
        return pool

    def _sum(self, question: Question) -> Sum:
        """The scores of all entries, not yet added up."""
        asked, weights = self._counts.asked(question.text, question.without), self._weights
        factors = weights.question(asked)
        groups = asked.words if weights.merged else np.arange(len(factors))
        common = np.bincount(groups, self._counts.frequency[asked.terms])[groups] > COMMON
        numbers, values = self._read(asked.some(~common), factors[~common])
        chosen = asked.terms[common].tolist(), groups[common].tolist(), factors[common].tolist()
        firsts = {group: (term, factor) for term, group, factor in reversed([*zip(*chosen, strict=True)])}
        parts = [
            Part(factor, self._common.get(term) or self._learn(term, asked.some(groups == group)))
            for group, (term, factor) in reversed(firsts.items())
        ]
        return Sum(numbers, values, parts, len(self._active))

    def _read(self, asked: Asked, factors: Floats) -> tuple[Ints, Floats]:
        """Entry and part of the score of every posting of some terms, in their order within each segment."""
        factors = factors * self._weights.terms(asked)
        found = [self._postings(segment, asked, factors) for segment in self._counts.segments] if len(factors) else []
        if len(found) == 1:
            return found[0]
        return np.concatenate([NONE, *(n for n, _ in found)]), np.concatenate([np.zeros(0), *(v for _, v in found)])

    def _postings(self, segment: Segment, asked: Asked, factors: Floats) -> tuple[Ints, Floats]:
        starts, ends = segment.bounds(asked.terms)
        at, term = positions(starts, ends)
        numbers = segment.numbers[at]
        values = factors[term] * self._weights.entries(numbers, asked.fields[term], segment.times[at])
        if self._whole:
            return numbers, values
        active = self._active[numbers]
        return numbers[active], values[active]

    def _learn(self, first: int, asked: Asked) -> Entries:
        """The entries that have one of some terms, with the sums of their values; kept under the first term."""
        numbers, parts = self._read(asked, np.ones(len(asked.terms)))
        distinct, place = np.unique(numbers, return_inverse=True)
        values = np.bincount(place, parts).astype(float, copy=False)
        self._common[first] = Entries(distinct, values, float(values.max()))
        return self._common[first]
