"""The policy loss: clipped surrogate, KL to a reference, entropy bonus.

KL estimates per token are Schulman's k1, k2 and k3. Weights correct for the mismatch between the log-probs of engine
and trainer.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coevo.configs.update.loss import LossConfig


def importance(gap: Tensor, cap: float) -> Tensor:
    """Truncated importance weights min(e^gap, cap), without gradient.

    Args:
        gap: log-prob under the trainer before the update minus that under the distribution of the draw.
        cap: maximum weight.
    """
    return gap.detach().clamp(-CLAMP, CLAMP).exp().clamp(max=cap)


def mismatch(drift: Tensor) -> dict[str, float]:
    """Difference of the trainer's log-probs from the engine's before the policy has moved.

    Args:
        drift: trainer minus engine log-prob of each token, [tokens].

    Returns:
        ``mismatch_mean``, ``mismatch_p99`` (exceeded by 1 % of the tokens) and ``mismatch_max`` of the absolute
        difference, ``mismatch_k3`` the KL(engine || trainer) estimate, ``mismatch_ess`` the effective sample size of
        importance weights as a share of the tokens, and ``mismatch_tokens``, the number of tokens; without tokens the
        differences are 0 and the share is 1.
    """
    if not drift.numel():
        names = ("mismatch_mean", "mismatch_p99", "mismatch_max", "mismatch_k3", "mismatch_tokens")
        return dict.fromkeys(names, 0.0) | {"mismatch_ess": 1.0}
    weights, sizes = drift.double().clamp(-CLAMP, CLAMP).exp(), drift.abs()
    return {
        "mismatch_mean": float(sizes.mean()),
        "mismatch_p99": float(sizes.kthvalue(math.ceil(0.99 * len(sizes))).values),
        "mismatch_max": float(sizes.max()),
        "mismatch_k3": float(kl_estimate(drift.double(), "k3").mean()),
        "mismatch_ess": float(weights.sum().square() / weights.square().sum() / len(weights)),
        "mismatch_tokens": float(drift.numel()),
    }


CLAMP: Final = 20.0
"""Maximum log-ratio that is exponentiated; e^20 is outside of any trust region."""


def kl_estimate(log_ratio: Tensor, kind: str) -> Tensor:
    """KL(policy || reference) per token from log reference - log policy, by Schulman's k1, k2 or k3."""
    log_ratio = log_ratio.clamp(-CLAMP, CLAMP)
    if kind == "k1":
        return -log_ratio
    if kind == "k2":
        return log_ratio.square() / 2
    return log_ratio.exp() - log_ratio - 1


def kl_penalties(behaviour: Sequence[float], reference: Sequence[float], config: LossConfig) -> NDArray[np.float64]:
    """KL penalty on each token's reward, from its log-probs under engine and reference, [tokens]."""
    drawn, frozen = (torch.tensor(values, dtype=torch.float64) for values in (behaviour, reference))
    return (config.kl_coefficient * kl_estimate(frozen - drawn, config.kl)).numpy()


@dataclass(frozen=True, slots=True)
class Completions:
    """Completion tokens of some rows (turns), right-padded to [rows, width].

    Attributes:
        logprobs: under the policy, with gradient.
        old: under the policy before the update if ``LossConfig.recomputes``; else ``behaviour``.
        behaviour: under the engine that drew them.
        reference: under the frozen reference.
        entropy: of the policy's distribution at each token, in nats.
        advantages: of each token.
        mask: true on real tokens.
        weights: of each token's loss, from ``weights_of`` over the whole minibatch.
    """

    logprobs: Tensor
    old: Tensor
    behaviour: Tensor
    reference: Tensor
    entropy: Tensor
    advantages: Tensor
    mask: Tensor
    weights: Tensor


@dataclass(frozen=True, slots=True)
class LossOutput:
    """A loss and its parts.

    Attributes:
        loss: weighted sum over the rows' tokens, a scalar with gradient.
        drift: log-prob under the policy minus that under the engine, of each real token, [tokens].
        totals: sums over real tokens of the figures that ``figures`` names.
    """

    loss: Tensor
    drift: Tensor
    totals: dict[str, float]


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss of completions, with its settings."""

    function: Callable[[Completions, LossConfig], LossOutput]
    config: LossConfig

    def of(self, batch: Completions) -> LossOutput:
        """Compute the loss."""
        return self.function(batch, self.config)


def policy_loss(batch: Completions, config: LossConfig) -> LossOutput:
    """Clipped surrogate plus KL (CoEvo-RL Eq. 6; numerics as verl and TRL).

    With ``traj-mean-step-mean`` the ratio is that of a whole action (SLEA-RL Eq. 7, JERP Eq. 23), shared by its
    tokens; otherwise each token has its own.
    """
    tokens, parts = _surrogate(batch, config)
    kl = kl_estimate(torch.where(batch.mask, batch.reference - batch.logprobs, 0.0), config.kl)
    if config.kl_in == "loss":
        tokens = tokens + config.kl_coefficient * kl
    if config.entropy_coefficient:
        bonus = config.entropy_coefficient * torch.where(batch.mask, batch.entropy, 0.0)
        tokens, parts = tokens - bonus, parts | {"entropy_bonus": bonus}
    parts |= {"kl": kl, "entropy": batch.entropy}
    return LossOutput(
        loss=(batch.weights * tokens).sum(),
        drift=torch.where(batch.mask, batch.logprobs - batch.behaviour, 0.0).detach()[batch.mask],
        totals={name: float(parts[name].detach()[batch.mask].sum()) for name in figures(config)},
    )


def by_token(config: LossConfig) -> bool:
    """True if the gradient at a token depends on that token alone."""
    return not config.by_action


def figures(config: LossConfig) -> tuple[str, ...]:
    """Names of the figures that the configured loss reports as means over tokens."""
    chosen = {
        "dual_clip_share": config.dual_clip,
        "importance_weight": config.importance_cap,
        "importance_capped_share": config.importance_cap,
        "entropy_bonus": config.entropy_coefficient,
    }
    return ("clip_share", "kl", "ratio_mean", "entropy", *(name for name, setting in chosen.items() if setting))


def averages(outputs: Sequence[LossOutput], config: LossConfig) -> dict[str, float]:
    """Token means of the outputs' ``totals``; zeros without tokens."""
    tokens = max(sum(output.drift.numel() for output in outputs), 1)
    return {name: sum(output.totals[name] for output in outputs) / tokens for name in figures(config)}


def _surrogate(batch: Completions, config: LossConfig) -> tuple[Tensor, dict[str, Tensor]]:
    """Clipped surrogate of each token, and its parts."""
    ratio = _shared(torch.where(batch.mask, batch.logprobs - batch.old, 0.0), config).clamp(-CLAMP, CLAMP).exp()
    free = -batch.advantages * ratio
    clipped = -batch.advantages * ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    tokens = torch.maximum(free, clipped)
    parts = {"clip_share": (clipped > free).float(), "ratio_mean": ratio}
    if config.dual_clip is not None:
        bound = torch.where(batch.advantages < 0, -config.dual_clip * batch.advantages, torch.inf)
        parts["dual_clip_share"] = (tokens > bound).float()
        tokens = torch.minimum(tokens, bound)
    if config.importance_cap is not None:
        gap = _shared(torch.where(batch.mask, batch.old - batch.behaviour, 0.0), config)
        weight = importance(gap, config.importance_cap)
        parts |= {"importance_weight": weight, "importance_capped_share": (weight >= config.importance_cap).float()}
        tokens = weight * tokens
    return tokens, parts


def _shared(log_ratio: Tensor, config: LossConfig) -> Tensor:
    """Log-ratios of tokens, or of whole actions repeated for each of their tokens."""
    if by_token(config):
        return log_ratio
    return log_ratio.sum(1, keepdim=True).expand_as(log_ratio)
