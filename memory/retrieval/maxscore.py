"""Entries that can be among the best k of a question, found without reading every posting (Turtle and Flood 1995).

The highest value of each word bounds what it adds to a score. Once k entries reach some score, an entry that has only
words whose bounds add up to less cannot be among the best: the entries of these words, the common ones, are not read.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from coevo.records.arrays import Floats, ShortIntegers

SAMPLE = 64
"""Entries, beyond k, whose scores are computed for a bound of the k-th best."""
READ = 1 << 14
"""Postings among which these entries are sought."""
DENSE = 16
"""Postings of a word that are all added in the time in which it is looked up in one entry."""
BLOCK = 32
"""Entries of which the best is found first."""
LONG = 1 << 16
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
        if self.postings > LONG:
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
    for place in reversed(range(skipped)):
        part = ascending[place]
        found = found[sums[found] + together[place + 1] >= least]
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
