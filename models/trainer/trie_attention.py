"""Attention over a trie: a node attends to the nodes on its path, and to nothing else.

On a CPU, the queries of each leaf's own nodes attend to the keys of its path, leaves of similar size together. On a
GPU, FlexAttention masks one sequence.
"""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint
from transformers import AttentionInterface
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from coevo.records.arrays import Integers
from coevo.utilities.errors import CoevoError

NAME: Final = "coevo_trie"
"""Name of this attention in a model's configuration."""
CHECKPOINTED: Final = "coevo_checkpointed"
"""Attribute of modules whose layer is computed again in the backward pass."""
GROWTH: Final = 1.5
"""Maximum ratio of sizes, about, of leaves that are computed together."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Leaves of similar size.

    Attributes:
        queries: nodes of each leaf that no earlier one contains, [leaves, most]; the last one repeated as padding.
        keys: nodes of each leaf's path, [leaves, longest]; likewise.
        mask: true where a query attends to a key, [leaves, 1, most, longest]; None if every path is new, thus causal.
    """

    queries: Tensor
    keys: Tensor
    mask: Tensor | None


@dataclass(frozen=True, slots=True)
class Paths:
    """Nodes that each node of a trie attends to.

    Attributes:
        bins: all leaves, for a CPU.
        places: index of each node among all queries of the bins, [nodes].
        ends: first node after each node's subtree, [nodes]; for FlexAttention.
        longest: number of nodes of the longest path.
    """

    bins: tuple[Bin, ...]
    places: Tensor
    ends: Tensor
    longest: int

    def to(self, device: torch.device) -> "Paths":
        """Copy to a device what attention needs there."""
        if device.type == "cpu":
            return self
        return Paths((), self.places.to(device), self.ends.to(device), self.longest)


@dataclass(frozen=True, slots=True)
class Masked:
    """Paths as a block mask of FlexAttention."""

    mask: BlockMask
    longest: int


Attended = Paths | Masked


def paths_of(paths: Sequence[Integers], starts: Integers) -> Paths:
    """Prepare attention.

    Args:
        paths: nodes from the root to each leaf, in depth-first order; nodes are numbered as they first occur.
        starts: number of nodes of each path that earlier paths contain, [leaves].
    """
    bins: dict[tuple[bool, int, int], list[int]] = {}
    for leaf, (path, start) in enumerate(zip(paths, starts.tolist(), strict=True)):
        bins.setdefault((start > 0, _size(len(path) - start), _size(len(path))), []).append(leaf)
    made = [_bin([paths[leaf] for leaf in chosen], starts[chosen]) for _, chosen in sorted(bins.items())]
    nodes = np.concatenate([one.queries.numpy().ravel() for one in made])
    _, places = np.unique(nodes, return_index=True)
    return Paths(tuple(made), torch.from_numpy(places), torch.from_numpy(_ends(paths, starts)), max(map(len, paths)))


def prepared(paths: Paths) -> Attended:
    """Paths in the form that ``attend`` needs on their device."""
    ends = paths.ends
    if ends.device.type == "cpu":
        return paths

    def on_path(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (key <= query) & (query < ends[key])

    count = len(ends)
    return Masked(create_block_mask(on_path, None, None, count, count, device=str(ends.device)), paths.longest)


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    trie: Attended | None = None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attention function for transformers' ``AttentionInterface``; without ``trie``, the same as ``sdpa``.

    Args:
        module: the attention layer.
        query: [1, heads, nodes, dimension], like ``key`` and ``value``, which may have fewer heads.
        key: see ``query``.
        value: see ``query``.
        attention_mask: unused with ``trie``.
        trie: nodes that each node attends to.
        scaling: factor of the scores; None for the dimension to the power -1/2.
        **options: of the layer.

    Returns:
        Outputs, [1, nodes, heads, dimension], and None.

    Raises:
        CoevoError: the layer's attention has a window shorter than the longest path, or bounds its scores.
    """
    if trie is None:
        return ALL_ATTENTION_FUNCTIONS["sdpa"](  # type: ignore[no-any-return]
            module, query, key, value, attention_mask, scaling=scaling, **options
        )
    _check(trie.longest, options)
    if isinstance(trie, Masked):
        output = _flex()(query, key, value, block_mask=trie.mask, scale=scaling, enable_gqa=True)
        return output.transpose(1, 2), None
    queries, pairs = query[0].transpose(0, 1), torch.cat([key[0], value[0]], dim=-1).transpose(0, 1)
    # A checkpointed layer keeps nothing as it is, and hooks of ours would keep something.
    again = not getattr(module, CHECKPOINTED, False)
    outputs = [_of_bin(one, queries, pairs, key.shape[-1], scaling, again) for one in trie.bins]
    return torch.cat(outputs).index_select(0, trie.places).view(1, query.shape[2], query.shape[1], -1), None


AttentionInterface.register(NAME, attend)


@cache
def _flex() -> Any:
    return torch.compile(flex_attention, dynamic=True)


def _of_bin(one: Bin, queries: Tensor, pairs: Tensor, width: int, scaling: float | None, again: bool) -> Tensor:
    """Outputs of a bin's queries, [leaves * most, heads * dimension].

    Args:
        one: the bin.
        queries: [nodes, heads, dimension].
        pairs: keys and values side by side, [nodes, heads of keys, 2 dimensions].
        width: dimension of keys.
        scaling: factor of the scores.
        again: True if the backward pass may gather keys and values again.
    """
    query, pair = _at(queries, one.queries), _at(pairs, one.keys)
    key, value = pair[..., :width], pair[..., width:]
    copied = again and one.keys.numel() > len(pairs)
    with _gathering(pairs.detach(), one.keys, key, value) if copied else nullcontext():
        output = scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=one.mask,
            is_causal=one.mask is None,
            scale=scaling,
            enable_gqa=query.shape[1] != key.shape[1],
        )
    return output.transpose(1, 2).flatten(2).flatten(0, 1)


def _at(rows: Tensor, nodes: Tensor) -> Tensor:
    """Rows [all, heads, dimension] at some nodes [leaves, some], as [leaves, heads, some, dimension]."""
    return rows.flatten(1).index_select(0, nodes.flatten()).view(*nodes.shape, *rows.shape[1:]).transpose(1, 2)


def _gathering(pairs: Tensor, nodes: Tensor, key: Tensor, value: Tensor) -> AbstractContextManager[None]:
    """Context in which the backward pass gathers these keys and values again.

    Leaves share most of their paths, and each has a copy of its own: kept for the backward pass, in every layer, the
    copies would take a multiple of all other activations.
    """
    width, keys, values = key.shape[-1], _place(key), _place(value)

    def pack(kept: Tensor) -> Tensor | slice:
        if _place(kept) == keys:
            return slice(None, width)
        # Detached: an output that its own node keeps would never be freed.
        return slice(width, None) if _place(kept) == values else kept.detach()

    def unpack(kept: Tensor | slice) -> Tensor:
        return kept if isinstance(kept, Tensor) else _at(pairs[..., kept], nodes)

    return torch.autograd.graph.saved_tensors_hooks(pack, unpack)


def _place(value: Tensor) -> tuple[object, ...]:
    """Memory that a tensor is a view of: two views with equal places have the same values."""
    return value.data_ptr(), value.shape, value.stride()


def _check(longest: int, options: dict[str, Any]) -> None:
    window = options.get("sliding_window")
    if window is not None and window < longest:
        raise CoevoError(
            f"the policy attends to {window} tokens, and an update has rows of {longest}: set update.packing=rows"
        )
    if options.get("softcap") is not None:
        raise CoevoError("the policy bounds its attention scores, which a trie does not: set update.packing=rows")


def _size(count: int) -> int:
    return math.ceil(math.log(count, GROWTH))


def _bin(paths: Sequence[Integers], starts: Integers) -> Bin:
    lengths = np.array([len(path) for path in paths])
    longest = np.arange(lengths.max())
    most = starts[:, None] + np.arange((lengths - starts).max())
    table = np.stack([path[np.minimum(longest, len(path) - 1)] for path in paths])
    own = np.take_along_axis(table, np.minimum(most, lengths[:, None] - 1), axis=1)
    mask = torch.from_numpy(longest <= most[:, None, :, None]) if starts.any() else None
    return Bin(torch.from_numpy(own), torch.from_numpy(table), mask)


def _ends(paths: Sequence[Integers], starts: Integers) -> Integers:
    """First node after each node's subtree."""
    count = int(paths[-1][-1]) + 1
    ends = np.full(count, count)
    for path, following, start in zip(paths, paths[1:], starts[1:].tolist(), strict=False):
        ends[path[start:]] = following[start]
    return ends


def checkpoint_layers(model: nn.Module) -> None:
    """Keep the inputs of every decoder layer of ``model``; compute the rest again when needed."""
    for layer in model.modules():
        if isinstance(layer, GradientCheckpointingLayer):
            layer.forward = partial(checkpoint, layer.forward, use_reentrant=False, preserve_rng_state=False)
            for part in layer.modules():
                setattr(part, CHECKPOINTED, True)
