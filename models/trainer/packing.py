"""Packing: the rows of a micro-batch as one token trie, or padded one by one.

The trie is one sequence in depth-first order, so a token is forwarded once however many rows begin with it. Rows are
padded instead where a model's layers do not support a trie (``update.packing=rows``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import torch
from torch import Tensor

from coevo.models.trainer.microbatches import Cut, padded, tries
from coevo.models.trainer.order import Leaves, leaves
from coevo.models.trainer.trie_attention import Paths, paths_of
from coevo.models.trainer.update_batch import Batch
from coevo.records.arrays import Integers


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
