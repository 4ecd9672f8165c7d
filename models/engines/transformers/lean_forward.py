"""A forward of Llama-like models without most of transformers' overhead.

With few weights the overhead takes as long as the computation: every call creates options and masks again, every step
is a module call, a norm is six calls, and queries and keys are rotated separately.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from coevo.models.engines.transformers.key_values import SlotCache
from coevo.models.policy.language_model import Policy

LIKE_LLAMA = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
"""Models that have exactly these steps; one with adapters has another class, and computes itself."""
ForwardStep = Callable[[torch.Tensor], torch.Tensor]
Rotation = tuple[torch.Tensor, torch.Tensor]


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


def forward_of(policy: Policy) -> Forward:
    """Lean forward for such a model; below float32 the model's own, which rounds like the trainer's."""
    lean = type(policy.model).__name__ in LIKE_LLAMA and policy.model.dtype == torch.float32
    return LeanForward(policy.model) if lean else forward_of_model(policy.model)


@dataclass(frozen=True)
class _Layer:
    """Steps of a layer, in their order; those to heads give (rows, new, heads, size of a head)."""

    attention_norm: ForwardStep
    queries: ForwardStep
    keys: ForwardStep
    values: ForwardStep
    out: ForwardStep
    inner_norm: ForwardStep
    gate: ForwardStep
    activation: ForwardStep
    up: ForwardStep
    down: ForwardStep


class LeanForward:
    """Forward equal to the model's, to within rounding; it sees in-place changes of the weights."""

    def __init__(self, model: Any) -> None:
        self._embedding = model.model.embed_tokens
        self._rotary = model.model.rotary_emb
        self._layers = [_layer(part) for part in model.model.layers]
        self._norm, self._head = _norm(model.model.norm), _linear(model.lm_head)

    def __call__(self, new: Columns, cache: SlotCache) -> torch.Tensor:
        """Logits, as in ``Forward``."""
        hidden = self._embedding(new.tokens)
        rotation = _rotation(*self._rotary(hidden, new.positions))
        for number, layer in enumerate(self._layers):
            heads = _heads(layer, layer.attention_norm(hidden), rotation)
            keys, values = cache.update(*heads[1:], number)
            hidden = hidden + layer.out(_attention(heads[0], keys, values, new.bias))
            inner = layer.inner_norm(hidden)
            hidden = hidden + layer.down(layer.activation(layer.gate(inner)) * layer.up(inner))
        return self._head(self._norm(hidden[:, -new.kept :])).flatten(0, 1)


def _rotation(cos: torch.Tensor, sin: torch.Tensor) -> Rotation:
    """Factors, (rows, new, 1, size), of heads and of heads with their halves swapped."""
    first, second = sin.chunk(2, -1)
    return cos.unsqueeze(2), torch.cat([-first, second], -1).unsqueeze(2)


def _heads(layer: _Layer, hidden: torch.Tensor, rotation: Rotation) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Queries, keys and values, (rows, heads, new, size), the first two rotated to their positions."""
    queries, keys = layer.queries(hidden), layer.keys(hidden)
    both, (factor, swapped) = torch.cat([queries, keys], 2), rotation
    both = torch.addcmul(both * factor, both.roll(both.shape[-1] // 2, -1), swapped).transpose(1, 2)
    return both[:, : queries.shape[2]], both[:, queries.shape[2] :], layer.values(hidden).transpose(1, 2)


def _attention(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Attention output of the new columns, (rows, new, heads * size)."""
    rows, heads, new, size = queries.shape
    if new == 1:
        # Queries that share a key are rows of one matrix: faster than grouping inside attention.
        queries = queries.reshape(rows, keys.shape[1], -1, size)
    seen = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=bias, enable_gqa=new > 1)
    return seen.reshape(rows, heads, new, size).transpose(1, 2).reshape(rows, new, -1)


def _layer(part: Any) -> _Layer:
    attention, mlp = part.self_attn, part.mlp
    size = attention.head_dim
    return _Layer(
        attention_norm=_norm(part.input_layernorm),
        queries=_split(attention.q_proj, size, getattr(attention, "q_norm", None)),
        keys=_split(attention.k_proj, size, getattr(attention, "k_norm", None)),
        values=_split(attention.v_proj, size, None),
        out=_linear(attention.o_proj),
        inner_norm=_norm(part.post_attention_layernorm),
        gate=_linear(mlp.gate_proj),
        activation=mlp.act_fn,
        up=_linear(mlp.up_proj),
        down=_linear(mlp.down_proj),
    )


def _split(linear: Any, size: int, norm: Any | None) -> ForwardStep:
    project = _linear(linear)

    def heads(hidden: torch.Tensor) -> torch.Tensor:
        return project(hidden).view(*hidden.shape[:-1], -1, size)

    if norm is None:
        return heads
    normed = _norm(norm)
    return lambda hidden: normed(heads(hidden))


def _linear(linear: Any) -> ForwardStep:
    return partial(functional.linear, weight=linear.weight, bias=linear.bias)


def _norm(norm: Any) -> ForwardStep:
    return partial(
        functional.rms_norm, normalized_shape=norm.weight.shape, weight=norm.weight, eps=norm.variance_epsilon
    )


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
