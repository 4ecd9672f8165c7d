"""Forward of the embedded engine: its input, and the model's own implementation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from coevo.models.engines.transformers.key_values import SlotCache


@dataclass(frozen=True)
class Columns:
    """New columns of a batch.

    Attributes:
        tokens: (rows, new) token ids.
        positions: (rows, new) of each in its sequence.
        bias: (rows, 1, new, columns before + new) added to attention scores.
        kept: number of last columns that need logits.
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    bias: torch.Tensor
    kept: int


Forward = Callable[[Columns, SlotCache], torch.Tensor]
"""Logits (rows * kept, vocabulary), row after row; the cache takes the keys and values of the new columns."""


def forward_of_model(model: Any) -> Forward:
    """Forward of the model itself, of any kind."""

    def forward(new: Columns, cache: SlotCache) -> torch.Tensor:
        output = model(
            input_ids=new.tokens,
            position_ids=new.positions,
            attention_mask=new.bias,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=new.kept,
        )
        logits: torch.Tensor = output.logits.flatten(0, 1)
        return logits

    return forward
