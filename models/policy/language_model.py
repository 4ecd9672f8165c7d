"""A policy in memory: model and tokenizer, what ends an answer, and how long a sequence may be.

Nothing here imports PyTorch: a policy behind an endpoint has a model without weights.
"""

from dataclasses import dataclass
from typing import Any

from coevo.models.policy.ends import template_end
from coevo.utilities.errors import CoevoError


@dataclass(frozen=True)
class Policy:
    """A causal language model, or a PEFT model around one, and its tokenizer."""

    model: Any
    tokenizer: Any


def ends_of(policy: Policy) -> list[int]:
    """Token ids that end an answer: the tokenizer's, the model's own, and the chat template's."""
    own, tokenizer = policy.model.generation_config.eos_token_id, policy.tokenizer
    named = {tokenizer.eos_token_id, *(own if isinstance(own, list) else [own]), template_end(tokenizer)}
    return sorted(named - {None})


def limit_of(config: Any) -> int:
    """Maximum sequence length in tokens; a batch's mask spans all columns, so a sliding window must never close."""
    kinds = set(getattr(config, "layer_types", None) or ()) - {"full_attention", "sliding_attention"}
    if kinds:
        raise CoevoError(f"the policy has {', '.join(sorted(kinds))} layers: choose one with attention in every layer")
    positions = int(config.max_position_embeddings)
    return min(positions, getattr(config, "sliding_window", None) or positions)
