"""Scores of TF-IDF and BM25: sums over the words of a question, of every entry or of those that can be the best.

What a word adds to the scores depends on the library and the question alone, is computed once per library, and is added
up in the order of the question. Therefore scores do not depend on how the library came about, in one step or in many,
and an entry has the same score whichever way it is found.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from coevo.memory.retrieval.lexicon import Counts
from coevo.memory.retrieval.scorer import NEVER, BankQuery
from coevo.memory.retrieval.segment import Segment, positions
from coevo.records.arrays import Floats, Indices, ShortIntegers

COMMON = 128
"""A key with more postings is learned alone, which bounds the memory; the others of a question are learned together."""
MAX_EXHAUSTIVE_POSTINGS = 1 << 18
"""Postings of a question that are all read, which costs less than bounds."""
MIN_ENTRIES_SORTED = 16
"""Entries per posting from which on the entries found are sorted rather than all sums searched."""
SAMPLE = 64
"""Entries, beyond k, whose scores are computed for a bound of the k-th best."""
READ = 1 << 14
"""Postings among which these entries are sought."""
DENSE = 16
"""Postings of a word that are all added in the time in which it is looked up in one entry."""
BLOCK = 32
"""Entries of which the best is found first."""
MIN_POSTINGS_BY_WORD = 1 << 16
"""Postings from which on adding up word by word is faster."""
NONE = np.zeros(0, np.int32)
ROUNDING, RELATIVE = 1e-11, 1e-9
"""Scores this close may be equal once they are rounded, or but for the order of summation."""
EntryMask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PostingList:
    """The entries of a library that have a word.

    Attributes:
        numbers: (entries,) numbers, ascending.
        values: (entries,) values of the word in them.
        highest: the largest value.
    """

    numbers: ShortIntegers
    values: Floats
    highest: float


class ScorePart(NamedTuple):
    """Part of the scores that a word of a question adds: factor times value."""

    factor: float
    entries: PostingList

    @property
    def most(self) -> float:
        """The most that it adds."""
        return self.factor * self.entries.highest

    @property
    def size(self) -> int:
        """Number of its entries."""
        return len(self.entries.numbers)

    def add_to(self, sums: Floats) -> None:
        """Add the part to (numbers,) sums of all entries."""
        np.add.at(sums, self.entries.numbers, self.factor * self.entries.values)

    def of(self, numbers: ShortIntegers) -> Floats:
        """The part of some entries' scores."""
        held = self.entries
        at = np.minimum(np.searchsorted(held.numbers, numbers), len(held.numbers) - 1)
        return np.where(held.numbers[at] == numbers, self.factor * held.values[at], 0.0)


@dataclass(frozen=True)
class Sum:
    """Scores as sums.

    Attributes:
        parts: words of the question; each has an entry.
        size: number of all entries.
    """

    parts: Sequence[ScorePart]
    size: int

    @cached_property
    def postings(self) -> int:
        """Number of all that is added up."""
        return sum(part.size for part in self.parts)

    def entries(self) -> ShortIntegers:
        """Numbers of the entries with a word of the question, ascending."""
        found = np.sort(np.concatenate([NONE, *(part.entries.numbers for part in self.parts)]))
        return found[np.flatnonzero(np.diff(found, prepend=-1))]

    def all(self) -> Floats:
        """(size,) scores of all entries."""
        if self.postings > MIN_POSTINGS_BY_WORD:
            sums = np.zeros(self.size)
            for part in self.parts:
                part.add_to(sums)
            return sums
        if not self.parts:
            return np.zeros(self.size)
        held = [part.entries for part in self.parts]
        numbers = np.concatenate([each.numbers for each in held])
        values = np.concatenate([each.values for each in held])
        factors = [part.factor for part in self.parts]
        if any(factor != 1 for factor in factors):
            values *= np.repeat(np.array(factors), [len(each.numbers) for each in held])
        return np.bincount(numbers, values, self.size).astype(float, copy=False)

    def of(self, numbers: ShortIntegers) -> Floats:
        """Scores of some entries, equal to those of ``all``."""
        scores = np.zeros(len(numbers))
        for part in self.parts:
            scores += part.of(numbers)
        return scores


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
        if total.postings > MAX_EXHAUSTIVE_POSTINGS:
            found, scores = best(total, None if whole else self._pool(rows), max(k, 1))
        else:
            sums = total.all()
            if not whole:
                places = leading(sums[numbers[rows]], max(k, 1)).astype(np.intp)
                return places, sums[numbers[rows[places]]]
            found = leading(sums, max(k, 1)) if total.postings * MIN_ENTRIES_SORTED > total.size else total.entries()
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
        terms, owners = self._weights.terms(new)
        common = np.bincount(owners, self._counts.frequency[terms], len(new)) > COMMON
        for some in filter(len, (new[~common], *new[common][:, None])):
            self._known |= zip(some.tolist(), self._read(some), strict=True)

    def _read(self, keys: Indices) -> Sequence[PostingList | None]:
        """Entries of each key with the sums of their values; None without any."""
        terms, owners = self._weights.terms(keys)
        factors, size = self._weights.values(terms), len(self._active)
        read = [self._postings(segment, terms, factors, owners) for segment in self._counts.segments]
        distinct, at = np.unique(np.concatenate([posting for posting, _ in read]), return_inverse=True)
        values = np.bincount(at, np.concatenate([value for _, value in read])).astype(float, copy=False)
        held, starts = np.unique(distinct // size, return_index=True)
        numbers, highest = (distinct % size).astype(np.int32), np.maximum.reduceat(values, starts)
        found: list[PostingList | None] = [None] * len(keys)
        spans = pairwise([*starts.tolist(), len(values)])
        for key, (first, end), most in zip(held.tolist(), spans, highest.tolist(), strict=True):
            found[key] = PostingList(numbers[first:end], values[first:end], most)
        return found

    def _postings(self, segment: Segment, terms: Indices, factors: Floats, owners: Indices) -> tuple[Indices, Floats]:
        """Number of the entry of every posting of some terms, plus all entries for each key before; its value."""
        starts, ends = segment.bounds(terms)
        at, term = positions(starts, ends)
        numbers, fields = segment.numbers[at], terms[term] % len(self._counts.words)
        values = factors[term] * self._weights.entries(numbers, fields, segment.times[at])
        postings = owners[term] * len(self._active) + numbers
        if self._whole:
            return postings, values
        active = self._active[numbers]
        return postings[active], values[active]


def leading(sums: Floats, k: int) -> ShortIntegers:
    """Numbers of entries, ascending, among which are the best k and all that tie with the last; all sums are above 0.

    The k-th best of the highest sums of blocks of entries is a bound, since k entries reach it.
    """
    blocks = sums[: len(sums) // BLOCK * BLOCK].reshape(-1, BLOCK).max(axis=1)
    least = float(np.partition(blocks, -k)[-k]) if k <= len(blocks) else 0.0
    return _reaching(sums, _below(least))


def best(scores: Sum, pool: EntryMask | None, k: int) -> tuple[ShortIntegers, Floats]:
    """Numbers, ascending, and scores of entries, among which are the best k and all that tie with the last of them.

    Args:
        scores: of all entries.
        pool: (size,) True for the entries to search; None to search all.
        k: at least 1.
    """
    least = _below(_kth(scores, pool, k))
    ascending = sorted(scores.parts, key=lambda part: part.most)
    together = [0.0, *np.cumsum([part.most for part in ascending]).tolist()]
    skipped = max(bisect_left(together, least) - 1, 0)
    sums = np.zeros(scores.size)
    for part in ascending[skipped:]:
        part.add_to(sums)
    found = _reaching(sums if pool is None else sums * pool, least - together[skipped])
    for index in reversed(range(skipped)):
        part = ascending[index]
        found = found[sums[found] + together[index + 1] >= least]
        if len(found) * DENSE > part.size:
            part.add_to(sums)
        else:
            sums[found] += part.of(found)
    found = found[sums[found] >= least]
    return found, scores.of(found)


def _kth(scores: Sum, pool: EntryMask | None, k: int) -> float:
    """A lower bound of the k-th best score: that among the entries with the best sums over some rarer words."""
    sums, read = np.zeros(scores.size), 0
    for part in sorted(scores.parts, key=attrgetter("size")):
        if read > k + SAMPLE and read + part.size > READ:
            break
        part.add_to(sums)
        read += part.size
    chosen = leading(sums if pool is None else sums * pool, k + SAMPLE)
    return float(np.partition(scores.of(chosen), -k)[-k]) if len(chosen) >= k else 0.0


def _below(score: float) -> float:
    """A score below all that may equal this one."""
    return score * (1 - RELATIVE) - ROUNDING


def _reaching(sums: Floats, least: float) -> ShortIntegers:
    """Numbers of the entries whose sums are at least this and above 0."""
    return np.flatnonzero(sums >= least if least > 0 else sums > 0).astype(np.int32)
