"""Prompts as a tree: a node a token, and prompts that begin alike share the nodes of what they share."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Nodes = npt.NDArray[np.int64]
SPARE = 2
"""How many times what the prompts at hand go through may be held, for those that come back to it."""
_ROOT = -1


class PrefixTree:
    """Numbers the tokens of prompts, in the order in which they come.

    Attributes:
        size: nodes so far.
    """

    def __init__(self) -> None:
        self._children: dict[tuple[int, int], int] = {}
        self.size = 0

    def add(self, prompt: Sequence[int]) -> Nodes:
        """(tokens,) the node of each token: those that came first in this prompt are the last ones, and in a row.

        A prompt's last token is always new and nobody's beginning: it has to be fed to get logits.
        """
        path, node, size = list[int](), _ROOT, self.size
        for token in prompt[:-1]:
            child = self._children.setdefault((node, token), size)
            size += child == size
            path.append(node := child)
        self.size = size + 1
        return np.array([*path, size])

    def keep(self, nodes: Nodes) -> None:
        """Have these nodes alone, numbered in their order; with a node come those before it, and no last token."""
        number = {int(node): place for place, node in enumerate(nodes)} | {_ROOT: _ROOT}
        held = ((edge, child) for edge, child in self._children.items() if child in number)
        self._children = {(number[parent], token): number[child] for (parent, token), child in held}
        self.size = len(nodes)
