"""Entries that can be among the best k of a question, found without reading every posting (Turtle and Flood 1995).

The highest value of each term bounds what it adds to a score. Once k entries reach some score, an entry that has only
terms whose bounds add up to less cannot be among the best: the entries of these terms, the common ones, are not read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from coevo.memory.library import Floats
from coevo.memory.retrieval.segment import Ints

SAMPLE = 64
"""Entries, beyond k, whose scores are computed for a first bound of the k-th best."""
READ = 1 << 14
"""Postings of the rarest terms among which these entries are sought."""
ROUNDING, RELATIVE = 1e-11, 1e-9
"""Scores this close may be equal once they are rounded, or but for the order of summation."""


@dataclass(frozen=True)
class TermEntries:
    """The entries of a library that have a term.

    Attributes:
        numbers: (entries,) numbers, ascending.
        values: (entries,) values of the term in them.
        highest: the largest value.
        factor: factor of the values, which depends on the question.
    """

    numbers: Ints
    values: Floats
    highest: float
    factor: float = 1.0

    def times(self, factor: float) -> "TermEntries":
        """The same with a question's factor."""
        return replace(self, factor=factor)

    def scores(self, numbers: Ints) -> Floats:
        """What the term adds to the scores of entries."""
        if not len(self.numbers):
            return np.zeros(len(numbers))
        at = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return np.where(self.numbers[at] == numbers, self.factor * self.values[at], 0.0)


Pool = npt.NDArray[np.bool_]
"""(numbers,) True for the entries to search."""


def scores_of(numbers: Ints, terms: Sequence[TermEntries]) -> Floats:
    """Scores of some entries, added up in the order of the terms."""
    scores = np.zeros(len(numbers))
    for term in terms:
        scores += term.scores(numbers)
    return scores


def candidates(terms: Sequence[TermEntries], pool: Pool, k: int) -> Ints:
    """Numbers of entries of a pool, among which are the best k and all that tie with the last of them."""
    least = _kth(terms, pool, k) * (1 - RELATIVE) - ROUNDING
    ascending = sorted(terms, key=lambda term: term.factor * term.highest)
    together = np.cumsum([term.factor * term.highest for term in ascending])
    skipped = int(np.searchsorted(together, least))
    numbers, sums = _read(ascending[skipped:], pool)
    for place in reversed(range(skipped)):
        able = sums + together[place] >= least
        numbers = numbers[able]
        sums = sums[able] + ascending[place].scores(numbers)
    return numbers[sums >= least]


def _kth(terms: Sequence[TermEntries], pool: Pool, k: int) -> float:
    """A lower bound of the k-th best score: that among some entries with rare terms; 0 if these are too few."""
    rarest = sorted(terms, key=lambda term: len(term.numbers))
    read = np.cumsum([len(term.numbers) for term in rarest])
    numbers, sums = _read(rarest[: int(np.searchsorted(read, READ)) + 1], pool)
    if len(numbers) < k:
        return 0.0
    chosen = np.sort(sums.argpartition(-min(k + SAMPLE, len(sums)))[-(k + SAMPLE) :])
    return float(np.partition(scores_of(numbers[chosen], terms), -k)[-k])


def _read(terms: Sequence[TermEntries], pool: Pool) -> tuple[Ints, Floats]:
    """Entries of the pool that have one of the terms, ascending, and the sums over these terms."""
    sums = np.zeros(len(pool))
    for term in terms:
        sums[term.numbers] += term.factor * term.values
    found = np.flatnonzero((sums > 0) & pool).astype(np.int32)
    return found, sums[found]
