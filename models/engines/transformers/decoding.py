"""The decoding of answers: keys and values of shared prompts and rows, the forward of a token, and its draw.

The forward is one of Llama-like models without most of transformers' overhead. With few weights the overhead takes as
long as the computation: every call creates options and masks again, every step is a module call, a norm is six calls,
and queries and keys are rotated separately.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn import functional
from transformers import LogitsProcessorList, TopKLogitsWarper, TopPLogitsWarper

from coevo.configs.rollout.rollout_config import SamplingConfig
from coevo.models.policy.language_model import Policy

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


ROUNDING = 2e-5
"""Bound of the difference that a batch makes to a cumulative probability in float32, at temperature 1."""


class Sampler:
    """Samples at a temperature, optionally from the nucleus or the top k."""

    def __init__(self, config: SamplingConfig) -> None:
        self._temperature, self._top_k, self._top_p = config.temperature, config.top_k, config.top_p
        self._filters = LogitsProcessorList()
        if config.top_k > 0:
            self._filters.append(TopKLogitsWarper(config.top_k))
        if config.top_p < 1:
            self._filters.append(TopPLogitsWarper(config.top_p))

    def draw(
        self, logits: torch.Tensor, rows: torch.Tensor, uniforms: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Draw one token per answer.

        Args:
            logits: (rows, vocabulary).
            rows: (answers,) the row that each answer is drawn from.
            uniforms: (answers,) in [0, 1).

        Returns:
            Token ids (answers,), and their log-probabilities (answers,) in the distribution they were drawn from.
        """
        kept, sums = self._distribution(logits)
        tokens = _drawn(sums[rows], uniforms)
        return tokens, kept.log_softmax(-1)[rows, tokens]

    def unsettled(
        self, logits: torch.Tensor, rows: torch.Tensor, uniforms: torch.Tensor, tokens: torch.Tensor
    ) -> torch.Tensor:
        """Mask, (answers,), of draws so close to a neighbouring token that rounding could decide them.

        A token that a filter might keep or drop by rounding counts with its whole probability.
        """
        _, sums = self._distribution(logits)
        doubt = (ROUNDING / min(1.0, self._temperature) + self._wavering(logits))[rows] * sums[:, -1][rows]
        low = sums[rows, (tokens - 1).clamp(min=0)] * (tokens > 0)
        points = uniforms.double() * sums[rows, -1]
        return torch.minimum(sums[rows, tokens] - points, points - low) <= doubt

    def _wavering(self, logits: torch.Tensor) -> torch.Tensor:
        """Probability, (rows,), of tokens at the edge of what the filters keep, among those that are kept."""
        scaled, near = logits.double() / self._temperature, ROUNDING / min(1.0, self._temperature)
        found = torch.zeros(len(logits), dtype=torch.float64)
        if 0 < self._top_k < logits.shape[-1]:
            last, next_one = scaled.topk(self._top_k + 1).values[:, -2:].unbind(-1)
            kept = scaled.masked_fill(scaled < last[:, None], -torch.inf)
            found += _swapped(scaled, last, next_one, near)
            scaled = kept
        if self._top_p < 1:
            # The nucleus is that of the tokens above: one more or less of them moves its edge.
            ordered = scaled.sort(-1).values
            shares, beyond = ordered.softmax(-1), 1 - self._top_p
            sums = shares.cumsum(-1)
            moved = (shares * ((sums - beyond).abs() <= near + found[:, None])).sum(-1)
            first = (sums <= beyond).sum(-1, keepdim=True).clamp(1, sums.shape[-1] - 1)
            last, next_one = ordered.gather(-1, first)[:, 0], ordered.gather(-1, first - 1)[:, 0]
            found = (found + moved) / self._top_p + _swapped(scaled, last, next_one, near)
        return found

    def _distribution(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits that the filters keep, and cumulative probabilities, both (rows, vocabulary) in float64."""
        kept = self._filters(None, logits.double() / self._temperature)
        return kept, kept.softmax(-1).cumsum(-1)


def _swapped(scaled: torch.Tensor, last: torch.Tensor, next_one: torch.Tensor, near: float) -> torch.Tensor:
    """Probability, (rows,), of tokens as good as the last that is kept, if the next one is, too; among those kept."""
    kept = scaled.masked_fill(scaled < last[:, None], -torch.inf).logsumexp(-1, keepdim=True)
    edge = (scaled - last[:, None]).abs() <= near
    return ((scaled - kept).exp() * edge).sum(-1) * (last - next_one <= near)


def _drawn(sums: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Token ids, (answers,), at these points of cumulative probabilities, (answers, vocabulary)."""
    # Scaled to the last sum, so that rounding never points beyond the vocabulary.
    tokens = torch.searchsorted(sums, (uniforms.double() * sums[:, -1]).unsqueeze(-1), right=True)
    return tokens.squeeze(-1).clamp(max=sums.shape[-1] - 1)
