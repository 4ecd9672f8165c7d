"""Scores of TF-IDF and BM25: sums over the words of a question, of every entry or of those that can be the best.

What a word adds to the scores depends on the library and the question alone, is computed once per library, and is added
up in the order of the question. Therefore scores do not depend on how the library came about, in one step or in many,
and an entry has the same score whichever way it is found.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from coevo.memory.retrieval import maxscore
from coevo.memory.retrieval.lexicon import Counts
from coevo.memory.retrieval.maxscore import EntryMask, PostingList, ScorePart, Sum, leading
from coevo.memory.retrieval.scorer import NEVER, BankQuery
from coevo.memory.retrieval.segment import Segment, positions
from coevo.records.arrays import Floats, Indices, ShortIntegers

COMMON = 128
"""A key with more postings is learned alone, which bounds the memory; the others of a question are learned together."""
MANY = 1 << 18
"""Postings of a question that are all read, which costs less than bounds."""
FEW = 16
"""Entries per posting from which on the entries found are sorted rather than all sums searched."""


class TermWeights(Protocol):
    """Score of a term in an entry, as a product of three factors above 0.

    A key stands for the terms with one factor of the question, whose values are added up once per library.
    """

    def question(self, words: Sequence[int], times: Sequence[int]) -> tuple[Sequence[int], Sequence[float]]:
        """Keys of a question, and their factors, from the numbers of its words and their counts."""
        ...

    def terms(self, keys: Indices) -> tuple[Indices, Indices]:
        """Terms of keys, in their order, and the place of the key of each."""
        ...

    def values(self, terms: Indices) -> Floats:
        """(terms,) factors that depend on the term and its field."""
        ...

    def entries(self, numbers: ShortIntegers, fields: Indices, times: ShortIntegers) -> Floats:
        """(postings,) factors that depend on the entry's field and the count of the term in it."""
        ...


class Postings:
    """Scores of a library.

    Args:
        counts: words of the library.
        weights: their weights.
        missing: score of entries without a word of the question.
    """

    def __init__(self, counts: Counts, weights: TermWeights, missing: float = NEVER) -> None:
        self._counts, self._weights, self._missing = counts, weights, missing
        self._active = counts.row_of >= 0
        self._whole = len(counts.numbers) == len(counts.row_of)
        self._known: dict[int, PostingList | None] = {}

    def __call__(self, question: BankQuery) -> Floats:
        """(rows,) scores."""
        scores = self._sum(question).all()[self._counts.numbers[question.rows]]
        return np.where(scores > 0, scores, self._missing)

    def best(self, question: BankQuery, k: int) -> tuple[Indices, Floats]:
        """Positions in ``question.rows``, ascending, and scores; see ``BestScore``."""
        total, rows, numbers = self._sum(question), question.rows, self._counts.numbers
        whole = len(rows) == len(numbers)
        if total.postings > MANY:
            found, scores = maxscore.best(total, None if whole else self._pool(rows), max(k, 1))
        else:
            sums = total.all()
            if not whole:
                places = leading(sums[numbers[rows]], max(k, 1)).astype(np.intp)
                return places, sums[numbers[rows[places]]]
            found = leading(sums, max(k, 1)) if total.postings * FEW > total.size else total.entries()
            scores = sums[found]
        places = self._counts.row_of[found].astype(np.intp)
        if not whole:
            places = np.searchsorted(rows, places)
        order = places.argsort()
        return places[order], scores[order]

    def _pool(self, rows: Indices) -> EntryMask:
        pool = np.zeros(len(self._active), bool)
        pool[self._counts.numbers[rows]] = True
        return pool

    def _sum(self, question: BankQuery) -> Sum:
        """The scores of all entries, not yet added up."""
        words, times = self._counts.asked(question.text, question.without)
        keys, factors = self._weights.question(words, times)
        known = self._known
        if new := [key for key in keys if key not in known]:
            self._learn(new)
        found = ((factor, known[key]) for key, factor in zip(keys, factors, strict=True))
        return Sum([ScorePart(factor, held) for factor, held in found if held is not None], len(self._active))

    def _learn(self, keys: Sequence[int]) -> None:
        new = np.array(keys, np.intp)
        terms, place = self._weights.terms(new)
        common = np.bincount(place, self._counts.frequency[terms], len(new)) > COMMON
        for some in filter(len, (new[~common], *new[common][:, None])):
            self._known |= zip(some.tolist(), self._read(some), strict=True)

    def _read(self, keys: Indices) -> Sequence[PostingList | None]:
        """Entries of each key with the sums of their values; None without any."""
        terms, place = self._weights.terms(keys)
        factors, size = self._weights.values(terms), len(self._active)
        read = [self._postings(segment, terms, factors, place) for segment in self._counts.segments]
        distinct, at = np.unique(np.concatenate([posting for posting, _ in read]), return_inverse=True)
        values = np.bincount(at, np.concatenate([value for _, value in read])).astype(float, copy=False)
        held, starts = np.unique(distinct // size, return_index=True)
        numbers, highest = (distinct % size).astype(np.int32), np.maximum.reduceat(values, starts)
        found: list[PostingList | None] = [None] * len(keys)
        spans = pairwise([*starts.tolist(), len(values)])
        for key, (first, end), most in zip(held.tolist(), spans, highest.tolist(), strict=True):
            found[key] = PostingList(numbers[first:end], values[first:end], most)
        return found

    def _postings(self, segment: Segment, terms: Indices, factors: Floats, place: Indices) -> tuple[Indices, Floats]:
        """Number of the entry of every posting of some terms, plus all entries for each key before; its value."""
        starts, ends = segment.bounds(terms)
        at, term = positions(starts, ends)
        numbers, fields = segment.numbers[at], terms[term] % len(self._counts.words)
        values = factors[term] * self._weights.entries(numbers, fields, segment.times[at])
        postings = place[term] * len(self._active) + numbers
        if self._whole:
            return postings, values
        active = self._active[numbers]
        return postings[active], values[active]
