"""Sampling of tokens: inverse CDF on uniforms of the row, so that a draw does not depend on its batch."""

import torch
from transformers import LogitsProcessorList, TopKLogitsWarper, TopPLogitsWarper

from coevo.configs.rollout.rollout_config import SamplingConfig


class Sampler:
    """Samples at a temperature, optionally from the nucleus or the top k."""

    def __init__(self, config: SamplingConfig) -> None:
        self._temperature = config.temperature
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
        scaled = logits.double() / self._temperature
        kept = self._filters(None, scaled)
        # Scaled to the last sum, so that rounding never points beyond the vocabulary.
        sums = kept.softmax(-1).cumsum(-1)[rows]
        tokens = torch.searchsorted(sums, (uniforms.double() * sums[:, -1]).unsqueeze(-1), right=True)
        tokens = tokens.squeeze(-1).clamp(max=logits.shape[-1] - 1)
        return tokens, kept.log_softmax(-1)[rows, tokens]
