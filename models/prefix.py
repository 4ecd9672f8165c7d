"""Shared prompt heads: the keys and values of what a group's prompts have in common, computed once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch

Layers = list[tuple[torch.Tensor, torch.Tensor]]


def common(sequences: Sequence[tuple[int, ...]]) -> int:
    """Length of the longest common prefix."""
    # The lexicographic extremes differ first where any two sequences do.
    low, high = min(sequences), max(sequences)
    if high[: len(low)] == low:
        return len(low)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(low, high, strict=False)))


@dataclass(frozen=True)
class Prefix:
    """One group's head: its token ids, and keys and values of each layer, (kv heads, tokens, head size)."""

    ids: tuple[int, ...]
    layers: Layers


@dataclass
class _Slots:
    """One layer's keys and values, (rows, kv heads, columns, head size), of which the first ``filled`` hold."""

    keys: torch.Tensor
    values: torch.Tensor
    filled: int = 0

    def write(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        start, self.filled = self.filled, self.filled + keys.shape[2]
        self.keys[:, :, start : self.filled] = keys
        self.values[:, :, start : self.filled] = values
        return self.keys[:, :, : self.filled], self.values[:, :, : self.filled]


class SlotCache:
    """Keys and values of a batch in preallocated columns; a transformers model takes it for its ``Cache``."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._layers: dict[int, _Slots] = {}

    def fill(self, prefixes: Sequence[Prefix], width: int) -> None:
        """Put every row's prefix into the first ``width`` columns; what lies beyond its end has to be masked."""
        for layer, (keys, values) in enumerate(prefixes[0].layers):
            slots = self._slots(layer, len(prefixes), keys, values)
            for row, prefix in enumerate(prefixes):
                for slot, held in zip((slots.keys, slots.values), prefix.layers[layer], strict=True):
                    slot[row, :, : min(width, held.shape[1])] = held[:, :width]
            slots.filled = width

    def keep(self, rows: torch.Tensor) -> None:
        """Have the rows of these indices, of which one may come several times."""
        held = max((len(slots.keys) for slots in self._layers.values()), default=0)
        if torch.equal(rows, torch.arange(held)):
            return
        for slots in self._layers.values():
            slots.keys, slots.values = slots.keys[rows], slots.values[rows]

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What attention calls: store the new columns, return everything up to them."""
        return self._slots(layer, len(keys), keys[0], values[0]).write(keys, values)

    def get_seq_length(self, layer: int = 0) -> int:
        """Columns filled so far."""
        return self._layers[layer].filled if layer in self._layers else 0

    def prefixes(self, ids: Sequence[tuple[int, ...]]) -> Iterator[Prefix]:
        """The rows as prefixes of their own."""
        layers = [self._layers[layer] for layer in sorted(self._layers)]
        for row, tokens in enumerate(ids):
            end = len(tokens)
            yield Prefix(tokens, [(x.keys[row, :, :end].clone(), x.values[row, :, :end].clone()) for x in layers])

    def _slots(self, layer: int, rows: int, keys: torch.Tensor, values: torch.Tensor) -> _Slots:
        if layer not in self._layers:
            empty = [part.new_zeros(rows, len(part), self._columns, part.shape[-1]) for part in (keys, values)]
            self._layers[layer] = _Slots(empty[0], empty[1])
        return self._layers[layer]


def heads(prompts: Mapping[str, Sequence[tuple[int, ...]]]) -> dict[str, tuple[int, ...]]:
    """For each group, what its prompts share, short of their last token: that one has to be fed to get logits."""
    return {group: members[0][: min(common(members), min(map(len, members)) - 1)] for group, members in prompts.items()}
