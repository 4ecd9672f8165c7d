"""Which prompts are computed together: several in a row, several rows in one forward."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from models.prefix_tree import Nodes, PrefixTree

ROW, FORWARD = 96, 1024
"""New tokens of a row, as near as whole prompts allow; and of a forward's rows, padded, unless it is one long row."""
TWICE = 32
"""Tokens at the most that a row computes although an earlier row of its forward does."""


@dataclass(frozen=True)
class Row:
    """Prompts beside one another.

    Attributes:
        prompts: their token ids.
        paths: the nodes of each.
        begin: number of the first node that they add.
        added: how many they add.
    """

    prompts: Sequence[tuple[int, ...]]
    paths: Sequence[Nodes]
    begin: int
    added: int

    @cached_property
    def nodes(self) -> Nodes:
        """What its prompts go through, in order."""
        return np.unique(np.concatenate(self.paths))


def forwards(tree: PrefixTree, prompts: Sequence[tuple[int, ...]]) -> Iterator[list[Row]]:
    """Rows of each forward, for all prompts in their order; the tree has them from then on."""
    together = list[Row]()
    for row in _rows(tree, prompts):
        if together and not _fits(row, together):
            yield together
            together = []
        together.append(row)
    if together:
        yield together


def _fits(row: Row, together: Sequence[Row]) -> bool:
    """Whether a row goes into a forward with others: there is room, and it needs little of what they add."""
    nodes, first = row.nodes, together[0].begin
    twice = np.count_nonzero((nodes >= first) & (nodes < row.begin))
    widest = max(each.added for each in (*together, row))
    return (len(together) + 1) * widest <= FORWARD and bool(twice <= TWICE)


def _rows(tree: PrefixTree, prompts: Sequence[tuple[int, ...]]) -> Iterator[Row]:
    begin, paths, sizes = tree.size, list[Nodes](), list[int]()
    for prompt in prompts:
        before = tree.size
        paths.append(tree.add(prompt))
        sizes.append(tree.size - before)
    numbers = evenly(sizes, max(1, round(sum(sizes) / ROW)))
    for _, members in groupby(range(len(prompts)), numbers.__getitem__):
        which = list(members)
        added = sum(sizes[n] for n in which)
        yield Row([prompts[n] for n in which], [paths[n] for n in which], begin, added)
        begin += added


def evenly(sizes: Sequence[int], rows: int) -> list[int]:
    """Row of each, in their order, so that of at most so many rows the widest is as narrow as can be."""
    widest = bisect_left(range(sum(sizes)), True, lo=max(sizes, default=0), key=lambda w: _filled(sizes, w)[-1] < rows)
    return _filled(sizes, widest)


def _filled(sizes: Sequence[int], width: int) -> list[int]:
    """Row of each where a row is filled before the next one begins."""
    row, used, rows = 0, 0, list[int]()
    for size in sizes:
        if used + size > width:
            row, used = row + 1, 0
        used += size
        rows.append(row)
    return rows
