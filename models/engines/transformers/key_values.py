"""Keys and values of the nodes of a prefix tree, and of the rows of a batch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

KeyValueLayer = tuple[torch.Tensor, torch.Tensor]


@dataclass
class _Slots:
    """Keys and values of one layer, (rows, kv heads, columns, head size); the first ``filled`` columns are set."""

    keys: torch.Tensor
    values: torch.Tensor
    filled: int = 0

    def write(self, keys: torch.Tensor, values: torch.Tensor) -> KeyValueLayer:
        start, self.filled = self.filled, self.filled + keys.shape[2]
        self.keys[:, :, start : self.filled] = keys
        self.values[:, :, start : self.filled] = values
        return self.keys[:, :, : self.filled], self.values[:, :, : self.filled]


class SlotCache:
    """Keys and values of a batch in preallocated columns; a transformers model uses it as its ``Cache``."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._layers: dict[int, _Slots] = {}

    def keep(self, rows: torch.Tensor) -> None:
        """Keep the rows with these indices; one index may appear several times."""
        held = max((len(slots.keys) for slots in self._layers.values()), default=0)
        if torch.equal(rows, torch.arange(held)):
            return
        for slots in self._layers.values():
            slots.keys, slots.values = slots.keys[rows], slots.values[rows]

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any) -> KeyValueLayer:
        """Store the new columns and return all columns so far; attention calls this."""
        if layer not in self._layers:
            rows, heads, _columns, size = keys.shape
            empty = [part.new_empty(rows, heads, self._columns, size) for part in (keys, values)]
            self._layers[layer] = _Slots(empty[0], empty[1])
        return self._layers[layer].write(keys, values)

    def get_seq_length(self, layer: int = 0) -> int:
        """Number of columns filled so far."""
        return self._layers[layer].filled if layer in self._layers else 0

    def columns(self, rows: torch.Tensor, columns: torch.Tensor) -> Iterator[KeyValueLayer]:
        """Selected columns of selected rows, pairwise, layer by layer, (columns, kv heads, head size)."""
        for _, slots in sorted(self._layers.items()):
            yield slots.keys[rows, :, columns], slots.values[rows, :, columns]


class NodeStore:
    """Keys and values of tree nodes, in the order of their numbers; (nodes, kv heads, head size) per layer."""

    def __init__(self) -> None:
        self._layers: list[KeyValueLayer] = []

    def cache(self, nodes: torch.Tensor, more: int) -> SlotCache:
        """Create a cache that begins with these nodes, (rows, width), and has room for ``more`` columns."""
        cache = SlotCache(nodes.shape[1] + more)
        for layer, (keys, values) in enumerate(self._layers):
            cache.update(keys[nodes].transpose(1, 2), values[nodes].transpose(1, 2), layer)
        return cache

    def append(self, cache: SlotCache, rows: torch.Tensor, columns: torch.Tensor) -> None:
        """Append selected columns of selected rows of a cache, pairwise, as the next nodes."""
        new = list(cache.columns(rows, columns))
        old = self._layers or [(keys[:0], values[:0]) for keys, values in new]
        self._layers = [
            (torch.cat([keys, more_keys]), torch.cat([values, more_values]))
            for (keys, values), (more_keys, more_values) in zip(old, new, strict=True)
        ]

    def keep(self, nodes: torch.Tensor) -> None:
        """Keep only these nodes, in this order."""
        self._layers = [(keys[nodes], values[nodes]) for keys, values in self._layers]
