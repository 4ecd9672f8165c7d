"""The policy loss."""

from typing import Literal, Self

from pydantic import Field, model_validator

from coevo.configs.base import MAX_FACTOR, MAX_TOKENS, Config

Aggregation = Literal[
    "token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm", "traj-mean-step-mean"
]


class LossConfig(Config):
    """Clipped surrogate with KL to the reference policy."""

    clip_low: float = Field(default=0.2, gt=0, lt=1)
    """Lower clip of the importance ratio, 1 - clip_low."""
    clip_high: float = Field(default=0.2, gt=0, le=MAX_FACTOR)
    """Upper clip of the importance ratio, 1 + clip_high."""
    dual_clip: float | None = Field(default=3.0, gt=1, le=MAX_FACTOR)
    """Maximum loss of a bad action in units of its advantage (c of dual-clip PPO). Null is the surrogate as the papers
    print it; its loss ends only where log-ratios do, at e^20 = 5e8 times the advantage.
    """
    importance_cap: float | None = Field(default=None, gt=0, le=MAX_FACTOR)
    """Maximum weight that corrects the engine's distribution to the trainer's (often 2); null for no correction.

    The weight is the trainer's probability before the update over the engine's. With ``traj-mean-step-mean`` it is that
    of a whole action, a product over its tokens: a mismatch of .02 a token makes that of 100 tokens vary by a fifth.
    """
    kl: Literal["k1", "k2", "k3"] = "k3"
    """Estimator of KL(policy || reference) per token."""
    kl_coefficient: float = Field(default=1e-3, ge=0, le=MAX_FACTOR)
    """Weight of the KL term (beta)."""
    kl_in: Literal["loss", "reward"] = "loss"
    """Place of the KL term: in the loss, or as a penalty on the reward of each token."""
    entropy_coefficient: float = Field(default=0.0, ge=0, le=MAX_FACTOR)
    """Weight of the entropy bonus."""
    aggregation: Aggregation = "token-mean"
    """Aggregation of token losses into one number."""
    width: int | None = Field(default=None, ge=1, le=MAX_TOKENS)
    """Divisor of ``seq-mean-token-sum-norm``, beside the number of turns; null takes the batch's longest completion."""

    @property
    def by_action(self) -> bool:
        """True if the tokens of an action share its ratio (SLEA-RL Eq. 7, JERP Eq. 20)."""
        return self.aggregation == "traj-mean-step-mean"

    @property
    def recomputes(self) -> bool:
        """True if ratios are taken to the trainer's own log-probs from before the update, not to the engine's.

        The engine's differ from them by rounding, which a ratio of a whole action multiplies up: it would be clipped
        before anything was learned.
        """
        return self.by_action or self.importance_cap is not None

    @model_validator(mode="after")
    def _divided(self) -> Self:
        if self.width is not None and self.aggregation != "seq-mean-token-sum-norm":
            raise ValueError(
                f"width is a divisor that aggregation={self.aggregation} does not use: set update.loss.width=null or "
                "update.loss.aggregation=seq-mean-token-sum-norm"
            )
        return self
