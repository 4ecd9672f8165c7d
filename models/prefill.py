"""Prefill: the tokens of prompts that have not been computed yet, packed into rows without padding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from models.prefix_tree import Nodes, PrefixTree

SIZE = 128
"""Tokens from which on a pack is full; each attends to all columns of its pack, masked or not."""


@dataclass(frozen=True)
class Pack:
    """Prompts of which one row computes all that is missing.

    Attributes:
        tokens: (1, new) token ids.
        positions: (1, new) of each in its prompt.
        held: (1, columns) nodes computed before that some of them attend to.
        mask: (1, 1, new, columns + new) what each attends to: everything before it in its prompt, and itself.
        paths: the nodes of each prompt.
        ends: (prompts,) where the last token of each is among the new ones.
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    held: torch.Tensor
    mask: torch.Tensor
    paths: Sequence[Nodes]
    ends: torch.Tensor


def packs(tree: PrefixTree, prompts: Sequence[tuple[int, ...]]) -> Iterator[Pack]:
    """Packs for all prompts, in their order, each to be computed before the next is asked for."""
    first, paths = tree.size, list[Nodes]()
    for count, prompt in enumerate(prompts, 1):
        paths.append(tree.add(prompt))
        if tree.size - first >= SIZE or count == len(prompts):
            yield _pack(prompts[count - len(paths) : count], paths, first)
            first, paths = tree.size, []


def _pack(prompts: Sequence[tuple[int, ...]], paths: Sequence[Nodes], first: int) -> Pack:
    """Nodes from ``first`` on are new."""
    nodes = np.unique(np.concatenate(paths))
    held, new = nodes[nodes < first], int(nodes[-1]) + 1 - first
    mask = np.zeros((new, len(held) + new), dtype=bool)
    tokens, positions, start = np.zeros(new, dtype=np.int64), np.zeros(new, dtype=np.int64), 0
    for prompt, path in zip(prompts, paths, strict=True):
        own = slice(start, int(path[-1]) + 1 - first)
        begin, start = len(path) - (own.stop - own.start), own.stop
        before = path[:begin]
        columns = np.where(before < first, np.searchsorted(held, before), len(held) + before - first)
        mask[own, columns] = True
        mask[own, len(held) + own.start : len(held) + own.stop] = np.tri(len(path) - begin, dtype=bool)
        tokens[own], positions[own] = prompt[begin:], range(begin, len(path))
    return Pack(
        tokens=torch.from_numpy(tokens)[None],
        positions=torch.from_numpy(positions)[None],
        held=torch.from_numpy(held)[None],
        mask=torch.from_numpy(mask)[None, None],
        paths=paths,
        ends=torch.tensor([path[-1] - first for path in paths]),
    )
