"""Micro-batches and their packing.

Rows of a minibatch are cut to what a process holds at once. Each micro-batch is one token trie, a sequence in
depth-first order, so that a token is forwarded once however many rows begin with it. Rows are padded one by one instead
where a model's layers do not support a trie (``update.packing=rows``).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Final, Self

import numpy as np
import torch
from torch import Tensor

from coevo.models.trainer.order import Leaves, leaves
from coevo.models.trainer.trie_attention import Paths, paths_of
from coevo.models.trainer.update_batch import Batch
from coevo.records.arrays import Integers

PAIRS: Final = 4096**2
"""Maximum pairs of a token and one that it attends to: their mask takes a byte for each."""

Runs = list[list[int]]
Cut = Callable[[Batch, Sequence[int], int], Runs]


def tries(batch: Batch, rows: Sequence[int], tokens: int) -> Runs:
    """Cut rows into tries of at most ``tokens`` distinct tokens and ``PAIRS`` pairs, or of one leaf.

    A group stays together where it fits, else each of its episodes does. The turns of a conversation are beginnings of
    its last row, which alone takes as much: they stay with it however long it is.
    """

    def fits(part: list[int]) -> bool:
        tree = leaves(batch.order, part)
        return len(tree.rows) == 1 or (tree.tokens <= tokens and tree.pairs <= PAIRS)

    runs: Runs = []
    levels = [batch.groups.tolist(), batch.episodes.tolist(), range(len(batch))]
    if rows:
        _add(runs, list(rows), levels, fits)
    return runs


def padded(batch: Batch, rows: Sequence[int], tokens: int) -> Runs:
    """Cut rows into runs of similar length, of at most ``tokens`` tokens with their padding, or of one row."""
    runs: Runs = []
    for row in sorted(rows, key=lambda row: (batch.length(row), row)):
        if runs and (len(runs[-1]) + 1) * batch.length(row) <= tokens:
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs


def _add(runs: Runs, rows: list[int], levels: Sequence[Sequence[int]], fits: Callable[[list[int]], bool]) -> None:
    """Add rows to the last run, else as a run, else part by part: the parts have the same value in ``levels[0]``."""
    if runs and fits(runs[-1] + rows):
        runs[-1] += rows
    elif fits(rows):
        runs.append(rows)
    else:
        for part in _parts(rows, levels[0]):
            _add(runs, part, levels[1:], fits)


def _parts(rows: list[int], values: Sequence[int]) -> Iterator[list[int]]:
    for _, part in groupby(sorted(rows, key=lambda row: (values[row], row)), key=lambda row: values[row]):
        yield list(part)


class _MovedRows:
    def to(self, device: torch.device) -> Self:
        """Copy to a device."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return type(self)(**{name: value.to(device) for name, value in values.items()})


@dataclass(frozen=True, slots=True)
class Trie(_MovedRows):
    """Rows as a trie of tokens.

    Attributes:
        ids: token ids of the nodes in depth-first order, [nodes].
        positions: depth of each node, [nodes].
        paths: nodes that each node attends to.
        reads: node before each distinct target, [targets].
        targets: token ids to predict, [targets]; one that several rows have after the same node is there once.
        places: index of the target of each token of each completion, [rows, longest completion].
    """

    ids: Tensor
    positions: Tensor
    paths: Paths
    reads: Tensor
    targets: Tensor
    places: Tensor


@dataclass(frozen=True, slots=True)
class PaddedRows(_MovedRows):
    """Rows one by one, padded on the left so that completions end in the same column.

    Attributes:
        ids: token ids without each row's last token, [rows, width].
        positions: of the tokens in their rows, [rows, width].
        real: 1 on real tokens, 0 on padding, [rows, width].
        targets: completion ids, [rows, longest completion].
        columns: column of the token before each target, counted from the last ones, [rows, longest completion].
    """

    ids: Tensor
    positions: Tensor
    real: Tensor
    targets: Tensor
    columns: Tensor


Packed = Trie | PaddedRows


@dataclass(frozen=True, slots=True)
class Packing:
    """A way to forward rows.

    Attributes:
        pack: pack the rows of a micro-batch.
        cut: cut rows into micro-batches.
    """

    pack: Callable[[Batch, Sequence[int]], Packed]
    cut: Cut


def pack_trie(batch: Batch, rows: Sequence[int]) -> Trie:
    """Build the trie of some rows of a batch, at least one."""
    tree = leaves(batch.order, rows)
    paths = _paths(tree)
    whole = [np.array(batch.prompts[row] + batch.completions[row]) for row in tree.rows]
    new = list(zip(tree.starts, tree.lengths, strict=True))
    ids = np.concatenate([row[start:end] for row, (start, end) in zip(whole, new, strict=True)])
    mask = batch.mask[list(rows), : max(len(batch.completions[row]) for row in rows)]
    reads, targets, places = _targets(batch, rows, [paths[leaf] for leaf in tree.owners])
    full = torch.zeros(mask.shape, dtype=torch.int64)
    full[mask] = torch.from_numpy(places)
    return Trie(
        ids=torch.from_numpy(ids),
        positions=torch.from_numpy(np.concatenate([np.arange(start, end) for start, end in new])),
        paths=paths_of(paths, tree.starts),
        reads=torch.from_numpy(reads),
        targets=torch.from_numpy(targets),
        places=full,
    )


def pack_rows(batch: Batch, rows: Sequence[int]) -> PaddedRows:
    """Pad some rows of a batch, at least one."""
    width = max(batch.length(row) for row in rows) - 1
    longest = max(len(batch.completions[row]) for row in rows)
    ids, real = (torch.zeros(len(rows), width, dtype=torch.int64) for _ in range(2))
    for index, row in enumerate(rows):
        start = width - batch.length(row) + 1
        ids[index, start:] = torch.tensor((batch.prompts[row] + batch.completions[row])[:-1])
        real[index, start:] = 1
    targets = torch.zeros(len(rows), longest, dtype=torch.int64)
    mask = batch.mask[list(rows), :longest]
    targets[mask] = torch.tensor([token for row in rows for token in batch.completions[row]])
    columns = (longest - mask.sum(1, keepdim=True) + torch.arange(longest)).clamp(max=longest - 1)
    return PaddedRows(ids, (real.cumsum(1) - 1).clamp(min=0), real, targets, columns)


PACKINGS = {"trie": Packing(pack_trie, tries), "rows": Packing(pack_rows, padded)}
"""Ways to forward rows, by ``update.packing``."""


def _paths(tree: Leaves) -> list[Integers]:
    """Nodes from the root to each leaf."""
    paths = [np.zeros(0, dtype=np.int64)]
    used = 0
    for start, length in zip(tree.starts.tolist(), tree.lengths.tolist(), strict=True):
        paths.append(np.concatenate([paths[-1][:start], np.arange(used, used + length - start)]))
        used += length - start
    return paths[1:]


def _targets(batch: Batch, rows: Sequence[int], paths: Sequence[Integers]) -> tuple[Integers, Integers, Integers]:
    """Distinct pairs of node and next token: the nodes, the tokens, and the pair of each completion token."""
    nodes = np.concatenate(
        [
            path[len(batch.prompts[row]) - 1 :][: len(batch.completions[row])]
            for row, path in zip(rows, paths, strict=True)
        ]
    )
    tokens = np.concatenate([np.array(batch.completions[row], dtype=np.int64) for row in rows])
    pairs, places = np.unique(nodes << 32 | tokens, return_inverse=True)
    return pairs >> 32, pairs & 0xFFFFFFFF, places
