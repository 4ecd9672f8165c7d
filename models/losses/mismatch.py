"""Mismatch between the log-probs of engine and trainer, and the weights that correct for it."""

import math

from torch import Tensor

from coevo.models.losses.kl import CLAMP, kl_estimate


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
