"""Rows in lexicographic order: neighbours share the most tokens, so their common beginnings make up a trie."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from coevo.records.arrays import Integers


@dataclass(frozen=True, slots=True)
class Order:
    """Lexicographic order of a batch's rows, each without its last token, which nothing follows.

    Attributes:
        ranks: place of each row, [rows].
        common: number of tokens that the row at each place shares with the one before it, [rows]; 0 at the first.
        lengths: number of tokens of each row, [rows].
    """

    ranks: Integers
    common: Integers
    lengths: Integers


@dataclass(frozen=True, slots=True)
class Leaves:
    """Leaves of the trie of some rows, in lexicographic order: rows that are the beginning of no other row.

    Attributes:
        rows: a row that ends at each leaf, [leaves].
        starts: number of its tokens that earlier leaves contain, [leaves].
        lengths: number of its tokens, [leaves].
        owners: index of the leaf that contains each of the given rows, [given rows].
    """

    rows: Integers
    starts: Integers
    lengths: Integers
    owners: Integers

    @property
    def tokens(self) -> int:
        """Number of nodes of the trie: of distinct tokens."""
        return int((self.lengths - self.starts).sum())

    @property
    def pairs(self) -> int:
        """Number of pairs of a token and one on its path, as attention computes them."""
        return int(((self.lengths - self.starts) * self.lengths).sum())


def order(rows: Sequence[tuple[int, ...]]) -> Order:
    """Order rows, each of at least one token."""
    arrays = [np.asarray(row[:-1], dtype=">u4") for row in rows]
    texts = [array.tobytes() for array in arrays]  # big-endian, so bytes compare as numbers do
    places = sorted(range(len(rows)), key=texts.__getitem__)
    ranks = np.empty(len(rows), dtype=np.int64)
    ranks[places] = np.arange(len(rows))
    common = [0, *(_common(arrays[one], arrays[other]) for one, other in pairwise(places))][: len(rows)]
    return Order(ranks, np.array(common, dtype=np.int64), np.array([len(array) for array in arrays], dtype=np.int64))


def leaves(of: Order, rows: Sequence[int]) -> Leaves:
    """Leaves of the trie of some rows, at least one."""
    given = np.asarray(rows)
    sequence = np.argsort(of.ranks[given], kind="stable")
    ranked = given[sequence]
    lengths, common = of.lengths[ranked], _between(of.common, of.ranks[ranked])
    last = np.append(common[1:] < lengths[:-1], True)  # not the beginning of the next row
    first = np.append(0, np.flatnonzero(last)[:-1] + 1)
    owners = np.empty(len(given), dtype=np.int64)
    owners[sequence] = np.cumsum(last) - last
    return Leaves(ranked[last], common[first], lengths[last], owners)


def _common(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> int:
    least = min(len(one), len(other))
    differ = one[:least] != other[:least]
    return int(differ.argmax()) if differ.any() else least


def _between(common: Integers, ranks: Integers) -> Integers:
    """Common tokens of each of some rows with the one before it: the least of all between them."""
    return np.append(0, np.minimum.reduceat(np.append(common, 0), ranks + 1)[:-1])
