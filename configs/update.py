"""The policy update: reward shaping, advantages, loss, optimizer and DeepSpeed."""

from typing import Annotated, Literal

from pydantic import Field

from configs.base import Config

Decay = Annotated[float, Field(ge=0, lt=1)]


class GrpoConfig(Config):
    """Group-relative advantages (CoEvo-RL Eq. 6)."""

    type: Literal["grpo"] = "grpo"
    """Which estimator."""
    ddof: Literal[0, 1] = 1
    """Delta degrees of freedom of the group's standard deviation."""
    epsilon: float = Field(default=1e-6, gt=0)
    """Added to the standard deviation."""


class LossConfig(Config):
    """Clipped surrogate with KL to the reference policy."""

    clip_low: float = Field(default=0.2, gt=0, lt=1)
    """Lower clip of the importance ratio, 1 - clip_low."""
    clip_high: float = Field(default=0.2, gt=0)
    """Upper clip of the importance ratio, 1 + clip_high."""
    kl: Literal["k1", "k2", "k3"] = "k3"
    """Estimator of KL(policy || reference) a token."""
    kl_coefficient: float = Field(default=1e-3, ge=0)
    """Weight of the KL term (beta)."""
    aggregation: Literal[
        "token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm", "traj-mean-step-mean"
    ] = "token-mean"
    """How token losses become one number."""
    width: int | None = Field(default=None, ge=1)
    """Divisor of ``seq-mean-token-sum-norm``; null takes the batch's longest completion."""


class OptimizerConfig(Config):
    """AdamW and how often it steps."""

    lr: float = Field(default=1e-6, gt=0)
    """Learning rate."""
    betas: tuple[Decay, Decay] = (0.9, 0.95)
    """Decay of the first and second moments."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Decoupled weight decay."""
    clip: float = Field(default=1.0, gt=0)
    """Largest gradient norm."""
    minibatches: int = Field(default=1, ge=1)
    """Optimizer steps a pass over the batch."""
    epochs: int = Field(default=1, ge=1)
    """Passes over the batch."""


class DeepSpeedConfig(Config):
    """The trainer child."""

    zero_stage: Literal[0, 1, 2] = 1
    """ZeRO stage: 0 shares nothing, 1 partitions the optimizer, 2 its gradients too, at every micro-batch."""
    tokens: int = Field(default=16384, ge=1)
    """Most prompt and completion tokens of a micro-batch; gradients are added up over a minibatch."""
    timeout: float = Field(default=600.0, gt=0)
    """Seconds after which a silent update is killed."""


class UpdateConfig(Config):
    """One policy update an iteration."""

    invalid_penalty: float = Field(default=0.0, ge=0)
    """Subtracted from the reward of each turn whose action was not understood."""
    advantage: GrpoConfig = GrpoConfig()
    """How rewards become advantages."""
    loss: LossConfig = LossConfig()
    """What is minimised."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """How it is minimised."""
    deepspeed: DeepSpeedConfig = DeepSpeedConfig()
    """Where it is minimised."""
