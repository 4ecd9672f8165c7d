"""The policy update: reward shaping, advantages, loss, critic, optimizer and DeepSpeed."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from configs.advantage import AdvantageConfig, GrpoConfig
from configs.base import FACTOR, MANY, Config
from configs.deepspeed import DeepSpeedConfig
from configs.loss import LossConfig
from configs.reward import ExtrinsicConfig, RewardConfig

Decay = Annotated[float, Field(ge=0, lt=1)]


class OptimizerConfig(Config):
    """AdamW and how often it steps."""

    lr: float = Field(default=1e-6, gt=0, le=100)
    """Learning rate."""
    betas: tuple[Decay, Decay] = (0.9, 0.95)
    """Decay of the first and second moments."""
    weight_decay: float = Field(default=0.0, ge=0, le=FACTOR)
    """Decoupled weight decay."""
    clip: float = Field(default=1.0, gt=0, le=FACTOR)
    """Largest gradient norm."""
    minibatches: int = Field(default=1, ge=1, le=10_000)
    """Optimizer steps a pass over the batch."""
    epochs: int = Field(default=1, ge=1, le=100_000)
    """Passes over the batch."""


class CriticConfig(Config):
    """A copy of the policy with a scalar head, trained beside it; advantages by ``gae`` need it."""

    optimizer: OptimizerConfig = OptimizerConfig(lr=1e-5, minibatches=4, epochs=2)
    """How its loss is minimised; it starts from nothing and wants a higher rate and more steps than the policy."""
    clip: float | None = Field(default=0.5, gt=0, le=FACTOR)
    """How far a value may move in one update before its squared error stops falling; null for no clip."""
    warmup: int = Field(default=0, ge=0, le=MANY)
    """Iterations at the beginning in which the critic learns alone: what says 0 of every state guides no policy."""


class UpdateConfig(Config):
    """One policy update an iteration."""

    invalid_penalty: float = Field(default=0.0, ge=0, le=FACTOR)
    """Subtracted from the reward of each turn whose action was not understood."""
    reward: RewardConfig = ExtrinsicConfig()
    """What an episode's turns are worth."""
    advantage: AdvantageConfig = GrpoConfig()
    """How rewards become advantages."""
    loss: LossConfig = LossConfig()
    """What is minimised."""
    critic: CriticConfig | None = None
    """What values states; null for estimators that need no values."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """How it is minimised."""
    deepspeed: DeepSpeedConfig = DeepSpeedConfig()
    """Where it is minimised."""

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        estimator, needed = self.advantage.type, self.advantage.needs_critic
        if needed and self.critic is None:
            raise ValueError(f"advantage.type={estimator} needs values: set critic={{}} or another estimator")
        if not needed and self.critic is not None:
            raise ValueError(
                f"critic is of no use to advantage.type={estimator}: set critic=null or advantage.type=gae"
            )
        if estimator == "gae" and self.reward.type == "discounted":
            raise ValueError("advantage.type=gae discounts by itself: set reward.type=extrinsic and gamma_step")
        if estimator == "gae" and getattr(self.reward, "gamma", 1.0) < 1:
            raise ValueError("advantage.type=gae discounts by itself: set reward.gamma=1.0 and gamma_step")
        if self.loss.kl_in == "reward" and self.loss.kl_coefficient == 0:
            raise ValueError("loss.kl_in=reward with kl_coefficient=0 adds nothing: set kl_in=loss or a coefficient")
        return self

    def needs_scores(self) -> bool:
        """Whether the trainer is asked about the episodes before their advantages can be computed."""
        return self.critic is not None or self.loss.kl_in == "reward"
