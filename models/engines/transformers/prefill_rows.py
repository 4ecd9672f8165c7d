"""Grouping of prompts for prefill: several prompts per row, several rows per forward."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
import numpy.typing as npt

ROW, FORWARD = 96, 1024
"""New tokens per row, as near as whole prompts allow; and per forward over all rows, padded, except in one long row."""
TWICE = 32
"""Maximum number of tokens that a row computes although an earlier row of its forward does as well."""
Nodes = npt.NDArray[np.int64]
MAX_TREE_RATIO = 2
"""Maximum size of the tree relative to the current prompts, for prompts that return to earlier nodes."""
_ROOT = -1


class PrefixTree:
    """Numbers of the tokens of prompts, in order of first appearance.

    Attributes:
        size: number of nodes so far.
    """

    def __init__(self) -> None:
        self._children: dict[tuple[int, int], int] = {}
        self.size = 0

    def add(self, prompt: Sequence[int]) -> Nodes:
        """Add a prompt and return (tokens,) the node of each token; new nodes come last, numbered consecutively.

        A prompt's last token is always new and begins no other prompt: it has to be fed to get logits.
        """
        path, node, size = list[int](), _ROOT, self.size
        for token in prompt[:-1]:
            child = self._children.setdefault((node, token), size)
            size += child == size
            path.append(node := child)
        self.size = size + 1
        return np.array([*path, size])

    def keep(self, nodes: Nodes) -> None:
        """Keep only these nodes, numbered in their order; they include all ancestors of each, and no last token."""
        number = {int(node): index for index, node in enumerate(nodes)} | {_ROOT: _ROOT}
        held = ((edge, child) for edge, child in self._children.items() if child in number)
        self._children = {(number[parent], token): number[child] for (parent, token), child in held}
        self.size = len(nodes)


@dataclass(frozen=True)
class PromptRow:
    """Prompts in one row.

    Attributes:
        prompts: their token ids.
        paths: the nodes of each.
        begin: number of the first node that they add.
        added: number of nodes that they add.
    """

    prompts: Sequence[tuple[int, ...]]
    paths: Sequence[Nodes]
    begin: int
    added: int

    @cached_property
    def nodes(self) -> Nodes:
        """Nodes of its prompts, in order."""
        return np.unique(np.concatenate(self.paths))


def forwards(tree: PrefixTree, prompts: Sequence[tuple[int, ...]]) -> Iterator[list[PromptRow]]:
    """Rows of each forward, for all prompts in their order; the prompts are added to the tree."""
    together = list[PromptRow]()
    for row in _rows(tree, prompts):
        if together and not _fits(row, together):
            yield together
            together = []
        together.append(row)
    if together:
        yield together


def _fits(row: PromptRow, together: Sequence[PromptRow]) -> bool:
    """True if a row fits into a forward with others: the forward has room, and the row needs few of their new nodes."""
    nodes, first = row.nodes, together[0].begin
    twice = np.count_nonzero((nodes >= first) & (nodes < row.begin))
    widest = max(each.added for each in (*together, row))
    return (len(together) + 1) * widest <= FORWARD and bool(twice <= TWICE)


def _rows(tree: PrefixTree, prompts: Sequence[tuple[int, ...]]) -> Iterator[PromptRow]:
    begin, paths, sizes = tree.size, list[Nodes](), list[int]()
    for prompt in prompts:
        before = tree.size
        paths.append(tree.add(prompt))
        sizes.append(tree.size - before)
    numbers = evenly(sizes, max(1, round(sum(sizes) / ROW)))
    for _, members in groupby(range(len(prompts)), numbers.__getitem__):
        which = list(members)
        added = sum(sizes[n] for n in which)
        yield PromptRow([prompts[n] for n in which], [paths[n] for n in which], begin, added)
        begin += added


def evenly(sizes: Sequence[int], rows: int) -> list[int]:
    """Row of each prompt, in order, so that the widest of at most ``rows`` rows is as narrow as possible."""
    widest = bisect_left(range(sum(sizes)), True, lo=max(sizes, default=0), key=lambda w: _filled(sizes, w)[-1] < rows)
    return _filled(sizes, widest)


def _filled(sizes: Sequence[int], width: int) -> list[int]:
    """Row of each prompt if a row is filled before the next one begins."""
    row, used, rows = 0, 0, list[int]()
    for size in sizes:
        if used + size > width:
            row, used = row + 1, 0
        used += size
        rows.append(row)
    return rows
