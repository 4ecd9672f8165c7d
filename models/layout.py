"""Where the tokens of a batch lie: [prefix, padded right | rest of the prompt, padded left | generated]."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from models.prefix import Prefix, SlotCache, common


@dataclass(frozen=True)
class Layout:
    """A batch of prompts behind their prefixes.

    Attributes:
        prefixes: each row's prefix.
        shared: (rows,) tokens of the prefix that the row's prompt really begins with.
        lengths: (rows,) tokens of the rest of the prompt, at least one.
        tokens: (rows, tail) token ids of the rest.
    """

    prefixes: Sequence[Prefix]
    shared: torch.Tensor
    lengths: torch.Tensor
    tokens: torch.Tensor

    @property
    def _width(self) -> int:
        return int(self.shared.max())

    def cache(self, generated: int) -> SlotCache:
        """A cache with the prefixes in place, and room for the rest and for what will be generated."""
        cache = SlotCache(self._width + self.tokens.shape[1] + generated)
        cache.fill(self.prefixes, self._width)
        return cache

    def positions(self) -> torch.Tensor:
        """(rows, tail) true positions of the rest; padding stands at 0."""
        tail = self.tokens.shape[1]
        return (torch.arange(tail) - (tail - self.lengths - self.shared).unsqueeze(-1)).clamp(min=0)

    def mask(self) -> torch.Tensor:
        """(rows, 1, tail, width + tail): what each token of the rest attends to.

        Padding attends to itself, so that no row of the softmax is empty.
        """
        tail = self.tokens.shape[1]
        causal = torch.ones(tail, tail, dtype=torch.bool).tril()
        own = self._seen()[:, None, self._width :] & causal | torch.eye(tail, dtype=torch.bool)
        before = self._seen()[:, None, : self._width].expand(-1, tail, -1)
        return torch.cat([before, own], dim=-1).unsqueeze(1)

    def next(self, rows: torch.Tensor, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Positions (n, 1) and mask (n, 1, 1, columns) of the token generated at ``step`` in the rows that run on."""
        generated = torch.ones(len(rows), step + 1, dtype=torch.bool)
        mask = torch.cat([self._seen()[rows], generated], dim=-1)[:, None, None]
        return (self.shared + self.lengths)[rows].unsqueeze(-1) + step, mask

    def _seen(self) -> torch.Tensor:
        """(rows, width + tail): whether a column holds a token of the row's prompt."""
        tail = self.tokens.shape[1]
        prefix = torch.arange(self._width) < self.shared.unsqueeze(-1)
        rest = torch.arange(tail) >= tail - self.lengths.unsqueeze(-1)
        return torch.cat([prefix, rest], dim=-1)


def lay_out(prefixes: Sequence[Prefix], prompts: Sequence[tuple[int, ...]]) -> Layout:
    """Split each prompt where it leaves its prefix, at the latest before its last token."""
    shared = [
        min(common([prefix.ids, prompt]), len(prompt) - 1) for prefix, prompt in zip(prefixes, prompts, strict=True)
    ]
    rest = [prompt[length:] for prompt, length in zip(prompts, shared, strict=True)]
    tail = max(map(len, rest))
    tokens = torch.tensor([[*[0] * (tail - len(row)), *row] for row in rest])
    return Layout(prefixes, torch.tensor(shared), torch.tensor([len(row) for row in rest]), tokens)
