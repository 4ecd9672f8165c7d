"""The loss of the answers that the policy gives as writer: REINFORCE (Williams 1992; RetroAgent Eq. 4)."""

from collections.abc import Sequence

import torch

from coevo.configs.update.loss import LossConfig
from coevo.configs.update.update import WriterUpdateConfig
from coevo.models.losses.policy import Completions, LossOutput
from coevo.records.writing import Rewarded

LOSS = LossConfig(aggregation="seq-mean-token-sum")
"""Aggregation: the log-likelihood of a whole answer, and the mean over answers."""


def reinforce_loss(batch: Completions, config: LossConfig) -> LossOutput:
    """Minus the advantage times the log-likelihood.

    There is no importance ratio: the policy drew the answers before this update, or with ``reward: replay`` before
    the last one.
    """
    tokens = -batch.advantages * torch.where(batch.mask, batch.logprobs, 0.0)
    return LossOutput(loss=(batch.weights * tokens).sum(), drift=torch.zeros(0), totals={})


def advantages(answers: Sequence[Rewarded], config: WriterUpdateConfig) -> list[float]:
    """Advantage of each answer: its scaled reward (RetroAgent Eq. 3), minus the baseline, times its weight.

    The baseline ``batch`` is the weighted mean of the scaled rewards.
    """
    weights = [answer.weight for answer in answers]
    earned = sum(answer.weight * answer.reward for answer in answers)
    baseline = earned / sum(weights) if answers and config.baseline == "batch" else 0.0
    return [answer.weight * config.scale * (answer.reward - baseline) for answer in answers]
