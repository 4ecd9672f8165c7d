"""Keys and values: of the nodes of a prefix tree, and of the rows of a batch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

Layer = tuple[torch.Tensor, torch.Tensor]


@dataclass
class _Slots:
    """One layer's keys and values, (rows, kv heads, columns, head size), of which the first ``filled`` hold."""

    keys: torch.Tensor
    values: torch.Tensor
    filled: int = 0

    def write(self, keys: torch.Tensor, values: torch.Tensor) -> Layer:
        start, self.filled = self.filled, self.filled + keys.shape[2]
        self.keys[:, :, start : self.filled] = keys
        self.values[:, :, start : self.filled] = values
        return self.keys[:, :, : self.filled], self.values[:, :, : self.filled]


class SlotCache:
    """Keys and values of a batch in preallocated columns; a transformers model takes it for its ``Cache``."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._layers: dict[int, _Slots] = {}

    def keep(self, rows: torch.Tensor) -> None:
        """Have the rows of these indices, of which one may come several times."""
        held = max((len(slots.keys) for slots in self._layers.values()), default=0)
        if torch.equal(rows, torch.arange(held)):
            return
        for slots in self._layers.values():
            slots.keys, slots.values = slots.keys[rows], slots.values[rows]

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any) -> Layer:
        """What attention calls: store the new columns, return everything up to them."""
        if layer not in self._layers:
            rows, heads, _columns, size = keys.shape
            empty = [part.new_empty(rows, heads, self._columns, size) for part in (keys, values)]
            self._layers[layer] = _Slots(empty[0], empty[1])
        return self._layers[layer].write(keys, values)

    def get_seq_length(self, layer: int = 0) -> int:
        """Columns filled so far."""
        return self._layers[layer].filled if layer in self._layers else 0

    def columns(self, rows: torch.Tensor, columns: torch.Tensor) -> Iterator[Layer]:
        """These columns of these rows, one of each, layer by layer, (columns, kv heads, head size)."""
        for _, slots in sorted(self._layers.items()):
            yield slots.keys[rows, :, columns], slots.values[rows, :, columns]


class NodeStore:
    """Keys and values of tree nodes, in the order of their numbers; (nodes, kv heads, head size) a layer."""

    def __init__(self) -> None:
        self._layers: list[Layer] = []

    def cache(self, nodes: torch.Tensor, more: int) -> SlotCache:
        """A cache that begins with these nodes, (rows, width), and has room for so many columns more."""
        cache = SlotCache(nodes.shape[1] + more)
        for layer, (keys, values) in enumerate(self._layers):
            cache.update(keys[nodes].transpose(1, 2), values[nodes].transpose(1, 2), layer)
        return cache

    def append(self, cache: SlotCache, rows: torch.Tensor, columns: torch.Tensor) -> None:
        """Take these columns of these rows of a cache, one of each, for the next nodes."""
        new = list(cache.columns(rows, columns))
        old = self._layers or [(keys[:0], values[:0]) for keys, values in new]
        self._layers = [
            (torch.cat([keys, more_keys]), torch.cat([values, more_values]))
            for (keys, values), (more_keys, more_values) in zip(old, new, strict=True)
        ]

    def keep(self, nodes: torch.Tensor) -> None:
        """Have these nodes alone, in this order."""
        self._layers = [(keys[nodes], values[nodes]) for keys, values in self._layers]
