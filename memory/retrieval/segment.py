"""Segments: the entries that have each term, over a range of entries; built once, never changed."""

from dataclasses import dataclass

import numpy as np

from coevo.records.arrays import Indices, ShortIntegers


@dataclass(frozen=True)
class Segment:
    """Entries by term.

    Attributes:
        end: number after that of the last entry.
        starts: (terms + 2,) first position of each term in ``numbers``; the last term, which stands for every later
            one, has no entries.
        numbers: numbers of the entries, ascending within each term.
        times: count of the term in the entry's field.
    """

    end: int
    starts: Indices
    numbers: ShortIntegers
    times: ShortIntegers

    def __len__(self) -> int:
        return self.end

    def bounds(self, terms: Indices) -> tuple[Indices, Indices]:
        """First and last position of terms, the last one excluded."""
        terms = np.minimum(terms, len(self.starts) - 2)
        return self.starts[terms], self.starts[terms + 1]


def invert(first: int, starts: Indices, terms: ShortIntegers, times: ShortIntegers, count: int) -> Segment:
    """Segment of the entries from number ``first`` on.

    Args:
        first: number of the first entry.
        starts: (entries + 1,) position of each entry's first term, counted from any origin.
        terms: terms of the entries, end to end.
        times: count of each.
        count: number of all terms.
    """
    from scipy.sparse import csr_matrix

    shape = (len(starts) - 1, count)
    columns = csr_matrix((times, terms, (starts - starts[0]).astype(np.int32)), shape=shape).tocsc()
    numbers = columns.indices.astype(np.int32, copy=False)
    numbers += np.int32(first)
    return Segment(
        first + shape[0], np.append(columns.indptr, columns.indptr[-1]).astype(np.intp), numbers, columns.data
    )


def positions(starts: Indices, ends: Indices) -> tuple[Indices, Indices]:
    """All positions from each start to its end, in order, and the place of that start."""
    sizes = ends - starts
    after = sizes.cumsum()
    rows = np.arange(len(sizes)).repeat(sizes)
    return np.arange(len(rows)) + (starts - after + sizes)[rows], rows
