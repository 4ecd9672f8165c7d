"""Draws of tokens from logits at points between 0 and 1, and which of them rounding could decide."""

import torch
from transformers import LogitsProcessorList, TopKLogitsWarper, TopPLogitsWarper

from coevo.configs.rollout.rollout_config import SamplingConfig

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
        """Probability, (rows,), of tokens at the edge of what the filters keep."""
        scaled = logits.double() / self._temperature
        probabilities, near = scaled.softmax(-1), ROUNDING / min(1.0, self._temperature)
        found = torch.zeros(len(logits), dtype=torch.float64)
        if 0 < self._top_k < logits.shape[-1]:
            last, next_one = scaled.topk(self._top_k + 1).values[:, -2:].unbind(-1)
            edge = (scaled - last[:, None]).abs() <= near
            found += (probabilities * edge).sum(-1) * (last - next_one <= near)
        if self._top_p < 1:
            ordered = probabilities.sort(-1).values
            found += (ordered * ((ordered.cumsum(-1) - (1 - self._top_p)).abs() <= near)).sum(-1)
        return found

    def _distribution(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits that the filters keep, and cumulative probabilities, both (rows, vocabulary) in float64."""
        kept = self._filters(None, logits.double() / self._temperature)
        return kept, kept.softmax(-1).cumsum(-1)


def _drawn(sums: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Token ids, (answers,), at these points of cumulative probabilities, (answers, vocabulary)."""
    # Scaled to the last sum, so that rounding never points beyond the vocabulary.
    tokens = torch.searchsorted(sums, (uniforms.double() * sums[:, -1]).unsqueeze(-1), right=True)
    return tokens.squeeze(-1).clamp(max=sums.shape[-1] - 1)
