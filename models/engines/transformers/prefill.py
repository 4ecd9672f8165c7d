"""Prefill: input of the forwards that compute the missing parts of prompts.

Columns of a row: [computed before | new, inside prompts | last tokens of prompts], each part padded on its right.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from coevo.models.engines.transformers.prefill_rows import PromptRow, forwards
from coevo.models.engines.transformers.prefix_tree import Nodes, PrefixTree

NodeParts = tuple[Nodes, Nodes, Nodes]


@dataclass(frozen=True)
class Pack:
    """Prompts that one forward computes.

    Attributes:
        tokens: (rows, new) token ids, 0 in padding columns.
        positions: (rows, new) of each in its prompt.
        held: (rows, columns) nodes computed before that some of them attend to.
        mask: (rows, 1, new, columns + new) attention of each: everything before it in its prompt, and itself.
        added: (nodes,) row and column of each added node, in the order of their numbers.
        paths: the nodes of each prompt.
        last: (prompts,) place of each prompt's last token in the last ``ends`` columns, row after row.
        ends: maximum number of prompts per row.
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    held: torch.Tensor
    mask: torch.Tensor
    added: tuple[torch.Tensor, torch.Tensor]
    paths: Sequence[Nodes]
    last: torch.Tensor
    ends: int


def packs(tree: PrefixTree, prompts: Sequence[tuple[int, ...]]) -> Iterator[Pack]:
    """Packs for all prompts, in their order; each must be computed before the next is requested."""
    for rows in forwards(tree, prompts):
        yield _pack(rows)


def _pack(rows: Sequence[PromptRow]) -> Pack:
    parts = [_parts(row, rows[0].begin) for row in rows]
    widths = [max(map(len, part)) for part in zip(*parts, strict=True)]
    page, ends = _Page(len(rows), widths), widths[-1]
    added = [page.write(number, row, part) for number, (row, part) in enumerate(zip(rows, parts, strict=True))]
    last = [number * ends + place for number, row in enumerate(rows) for place in range(len(row.paths))]
    row_of, column_of = torch.from_numpy(np.concatenate(added, axis=1))
    return Pack(
        tokens=torch.from_numpy(page.tokens),
        positions=torch.from_numpy(page.positions),
        held=torch.from_numpy(page.held),
        mask=torch.from_numpy(page.mask),
        added=(row_of, column_of),
        paths=[path for row in rows for path in row.paths],
        last=torch.tensor(last),
        ends=ends,
    )


def _parts(row: PromptRow, first: int) -> NodeParts:
    """Nodes of a row by the parts of its columns; those from ``first`` on are new."""
    nodes, ends = row.nodes, np.array([path[-1] for path in row.paths])
    inner = nodes >= first
    inner[np.searchsorted(nodes, ends)] = False
    return nodes[nodes < first], nodes[inner], ends


class _Page:
    """Empty arrays of a pack; ``widths`` are the widths of the parts of its columns."""

    def __init__(self, rows: int, widths: Sequence[int]) -> None:
        width, new = widths[0], sum(widths[1:])
        self._starts = np.cumsum([0, *widths[:-1]])
        self.tokens, self.positions = np.zeros((2, rows, new), dtype=np.int64)
        self.held = np.zeros((rows, width), dtype=np.int64)
        self.mask = np.zeros((rows, 1, new, width + new), dtype=bool)
        # Padding attends to itself: attention to nothing is NaN, which spreads.
        self.mask[:, 0, range(new), range(width, width + new)] = True

    def write(self, number: int, row: PromptRow, parts: NodeParts) -> Nodes:
        """Write a row; return row number and column, (2, nodes), of the nodes that it adds."""
        self.held[number, : len(parts[0])] = parts[0]
        columns = np.concatenate(
            [start + np.arange(len(part)) for start, part in zip(self._starts, parts, strict=True)]
        )
        columns = columns[np.argsort(np.concatenate(parts))]
        before = np.tri(max(map(len, row.paths)), dtype=bool)
        for prompt, path in zip(row.prompts, row.paths, strict=True):
            self._prompt(number, prompt, columns[np.searchsorted(row.nodes, path)], before)
        own = columns[row.nodes >= row.begin]
        return np.stack([np.full_like(own, number), own])

    def _prompt(self, number: int, prompt: Sequence[int], columns: Nodes, before: npt.NDArray[np.bool_]) -> None:
        """Write a prompt whose tokens have these columns."""
        length, width = len(prompt), self.held.shape[1]
        known = int(np.count_nonzero(columns < width))
        new = columns[known:] - width
        self.tokens[number, new], self.positions[number, new] = prompt[known:], range(known, length)
        self.mask[number, 0, new[:, None], columns] = before[known:length, :length]
