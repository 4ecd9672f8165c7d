"""The loss of the answers that the policy gives as writer: REINFORCE (Williams 1992; RetroAgent Eq. 4)."""

from collections.abc import Sequence

import numpy as np
import torch

from coevo.configs.update.loss import LossConfig
from coevo.configs.update.update_config import WriterUpdateConfig
from coevo.models.advantages.trajectory import varies
from coevo.models.losses.policy_loss import Completions, Loss, LossOutput, policy_loss
from coevo.records.writing import Rewarded


def reinforce_loss(batch: Completions, config: LossConfig) -> LossOutput:
    """Minus the advantage times the log-likelihood.

    There is no importance ratio: the policy drew the answers before this update, or with ``reward: replay`` before
    the last one.
    """
    tokens = -batch.advantages * torch.where(batch.mask, batch.logprobs, 0.0)
    return LossOutput(loss=(batch.weights * tokens).sum(), drift=torch.zeros(0), totals={})


REINFORCE = Loss(reinforce_loss, LossConfig(aggregation="seq-mean-token-sum"))
"""Sum over the tokens of an answer, and mean over answers."""


def clipped(clip: float, kl_coefficient: float) -> Loss:
    """Clipped surrogate of answers with KL, aggregated as ``REINFORCE``, whose gradient it has while no ratio moves."""
    config = REINFORCE.config.model_copy(
        update={"clip_low": clip, "clip_high": clip, "kl_coefficient": kl_coefficient},
    )
    return Loss(policy_loss, config)


def advantages(answers: Sequence[Rewarded], config: WriterUpdateConfig) -> list[list[float]]:
    """Advantage of each token: the scaled reward of its part (RetroAgent Eq. 3), minus the baseline, times its weight.

    The baseline ``batch`` is the weighted mean of the rewards of all parts; equal rewards have advantage 0. A token of
    no part has advantage 0.
    """
    parts = [(answer.weight, credit.reward) for answer in answers for credit in answer.credits]
    earned, weights = sum(weight * reward for weight, reward in parts), sum(weight for weight, _ in parts)
    if config.baseline == "none" or not parts:
        return [_tokens(answer, config.scale, 0.0) for answer in answers]
    scale = config.scale if varies(np.array([reward for _, reward in parts])) else 0.0
    return [_tokens(answer, scale, earned / weights) for answer in answers]


def _tokens(answer: Rewarded, scale: float, baseline: float) -> list[float]:
    found = [0.0] * len(answer.drawn.token_ids)
    for credit in answer.credits:
        found[credit.start : credit.end] = [answer.weight * scale * (credit.reward - baseline)] * (
            credit.end - credit.start
        )
    return found
