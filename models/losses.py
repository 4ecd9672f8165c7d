"""The policy loss on completion tokens: clipped surrogate, KL to a reference, aggregation to one number.

Every aggregation is linear in the token losses, so it is a table of weights made once for a whole minibatch; the
losses of its micro-batches then simply add up, whatever their sizes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from configs.update import LossConfig

CLAMP: Final = 20.0
"""Largest log-ratio that is exponentiated; e^20 is out of any trust region already."""


@dataclass(frozen=True, slots=True)
class Completions:
    """Completion tokens of some rows (turns), right-padded to [rows, width].

    Attributes:
        logprobs: under the policy, with gradient.
        behaviour: under the engine that drew them.
        reference: under the frozen reference.
        entropy: of the policy's distribution at each token, in nats.
        advantages: [rows].
        mask: true on real tokens.
        weights: of each token's loss, from ``weights_of`` over the whole minibatch.
    """

    logprobs: Tensor
    behaviour: Tensor
    reference: Tensor
    entropy: Tensor
    advantages: Tensor
    mask: Tensor
    weights: Tensor


@dataclass(frozen=True, slots=True)
class LossOutput:
    """A loss and what it was made of.

    Attributes:
        loss: weighted sum over the rows' tokens, a scalar with gradient.
        drift: log-prob under the policy minus that under the engine, of each real token, [tokens].
        totals: sums over real tokens of ``clip_share``, ``kl``, ``ratio_mean`` and ``entropy``.
    """

    loss: Tensor
    drift: Tensor
    totals: dict[str, float]


def policy_loss(batch: Completions, config: LossConfig) -> LossOutput:
    """Clipped surrogate plus KL (CoEvo-RL Eq. 6; numerics as verl and TRL).

    With ``traj-mean-step-mean`` the ratio is that of a whole action (SLEA-RL Eq. 7, JERP Eq. 23), shared by its
    tokens; otherwise each token has its own.
    """
    drift = torch.where(batch.mask, batch.logprobs - batch.behaviour, 0.0)
    step_level = config.aggregation == "traj-mean-step-mean"
    ratio = (drift.sum(1, keepdim=True).expand_as(drift) if step_level else drift).clamp(-CLAMP, CLAMP).exp()
    advantages = batch.advantages[:, None]
    free = -advantages * ratio
    clipped = -advantages * ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    kl = kl_estimate(torch.where(batch.mask, batch.reference - batch.logprobs, 0.0), config.kl)
    tokens = torch.maximum(free, clipped) + config.kl_coefficient * kl
    parts = {"clip_share": (clipped > free).float(), "kl": kl, "ratio_mean": ratio, "entropy": batch.entropy}
    return LossOutput(
        loss=(batch.weights * tokens).sum(),
        drift=drift.detach()[batch.mask],
        totals={name: float(part.detach()[batch.mask].sum()) for name, part in parts.items()},
    )


def kl_estimate(log_ratio: Tensor, kind: str) -> Tensor:
    """KL(policy || reference) a token from log reference - log policy, by Schulman's k1, k2 or k3."""
    log_ratio = log_ratio.clamp(-CLAMP, CLAMP)
    if kind == "k1":
        return -log_ratio
    if kind == "k2":
        return log_ratio.square() / 2
    return log_ratio.exp() - log_ratio - 1


def weights_of(mask: Tensor, episodes: Tensor, width: int, aggregation: str) -> Tensor:
    """What each token's loss counts for, so that the aggregate is the weighted sum, [rows, width of mask].

    Args:
        mask: true on real tokens; a row without any counts as no row.
        episodes: index of each row's episode, [rows].
        width: the divisor of ``seq-mean-token-sum-norm``.
        aggregation: name as in ``LossConfig``.
    """
    lengths = mask.sum(1)
    rows = lengths > 0
    count = int(rows.sum())
    if aggregation == "token-mean":
        scale = torch.full(lengths.shape, 1 / max(int(lengths.sum()), 1))
    elif aggregation == "seq-mean-token-sum":
        scale = torch.full(lengths.shape, 1 / max(count, 1))
    elif aggregation == "seq-mean-token-mean":
        scale = 1 / (lengths.clamp(min=1) * max(count, 1))
    elif aggregation == "seq-mean-token-sum-norm":
        scale = torch.full(lengths.shape, 1 / width)
    else:
        _, owner = torch.unique(episodes, return_inverse=True)
        steps = torch.bincount(owner, weights=rows.float())
        scale = 1 / (lengths.clamp(min=1) * steps.clamp(min=1)[owner] * max(int((steps > 0).sum()), 1))
    return mask * scale[:, None]


def averages(outputs: Sequence[LossOutput]) -> dict[str, float]:
    """Token means of the outputs' ``totals``; zeros where there is no token."""
    tokens = max(sum(output.drift.numel() for output in outputs), 1)
    names = ("clip_share", "kl", "ratio_mean", "entropy")
    return {name: sum(output.totals[name] for output in outputs) / tokens for name in names}


def mismatch(drift: Tensor) -> dict[str, float]:
    """How far the trainer's log-probs are from the engine's before the policy has moved.

    Args:
        drift: trainer minus engine log-prob of each token, [tokens].

    Returns:
        ``mismatch_mean`` and ``mismatch_max`` of the absolute difference, ``mismatch_k3`` the KL(engine || trainer)
        estimate, ``mismatch_ess`` the effective sample size of importance weights as a share of the tokens, and
        ``mismatch_tokens``, how many were compared; with none of them the differences are 0 and the share is 1.
    """
    if not drift.numel():
        return dict.fromkeys(("mismatch_mean", "mismatch_max", "mismatch_k3", "mismatch_tokens"), 0.0) | {
            "mismatch_ess": 1.0
        }
    weights = drift.double().clamp(-CLAMP, CLAMP).exp()
    return {
        "mismatch_mean": float(drift.abs().mean()),
        "mismatch_max": float(drift.abs().max()),
        "mismatch_k3": float(kl_estimate(drift.double(), "k3").mean()),
        "mismatch_ess": float(weights.sum().square() / weights.square().sum() / len(weights)),
        "mismatch_tokens": float(drift.numel()),
    }
