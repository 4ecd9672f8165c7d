"""Answers in the making: those to one prompt that have drawn the same so far are one row of the batch."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Branches:
    """Which row each running answer is read from.

    Attributes:
        answers: (running,) indices of the answers that have not ended.
        rows: (running,) the row of each.
        prompts: (rows,) index of the prompt that each row goes on from.
    """

    answers: torch.Tensor
    rows: torch.Tensor
    prompts: torch.Tensor

    @classmethod
    def begin(cls, asked: Sequence[Hashable]) -> "Branches":
        """One row for all answers to one prompt, in the order in which prompts first come."""
        place = {prompt: row for row, prompt in enumerate(dict.fromkeys(asked))}
        rows = torch.tensor([place[prompt] for prompt in asked])
        return cls(torch.arange(len(asked)), rows, torch.arange(len(place)))

    def grow(self, tokens: torch.Tensor, goes_on: torch.Tensor) -> tuple["Branches", torch.Tensor, torch.Tensor]:
        """The rows behind what the running answers have drawn.

        Args:
            tokens: (running,) one of each answer.
            goes_on: (running,) whether it has not ended with that, at least one.

        Returns:
            The next rows; the row that each comes from, in order, and its token, both (rows,).
        """
        tokens = tokens[goes_on]
        count = int(tokens.max()) + 1
        pairs, rows = torch.unique(self.rows[goes_on] * count + tokens, return_inverse=True)
        parents = pairs // count
        return Branches(self.answers[goes_on], rows, self.prompts[parents]), parents, pairs % count
