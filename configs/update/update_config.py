"""The policy update: reward shaping, advantages, loss, critic, optimizer and DeepSpeed."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from coevo.configs.base import MAX_COUNT, MAX_FACTOR, Config
from coevo.configs.update.advantage_config import AdvantageConfig, GrpoConfig
from coevo.configs.update.deepspeed import DeepSpeedConfig
from coevo.configs.update.loss import LossConfig
from coevo.configs.update.reward_config import ExtrinsicConfig, RewardConfig

DecayRate = Annotated[float, Field(ge=0, lt=1)]


class OptimizerConfig(Config):
    """AdamW and its number of steps."""

    lr: float = Field(default=1e-6, gt=0, le=100)
    """Learning rate."""
    betas: tuple[DecayRate, DecayRate] = (0.9, 0.95)
    """Decay of the first and second moments."""
    weight_decay: float = Field(default=0.0, ge=0, le=MAX_FACTOR)
    """Decoupled weight decay."""
    clip: float = Field(default=1.0, gt=0, le=MAX_FACTOR)
    """Maximum gradient norm."""
    minibatches: int = Field(default=1, ge=1, le=10_000)
    """Optimizer steps per pass over the batch."""
    epochs: int = Field(default=1, ge=1, le=100_000)
    """Passes over the batch."""


class CriticConfig(Config):
    """A copy of the policy with a scalar head, trained with it; advantages by ``gae`` need it."""

    optimizer: OptimizerConfig = OptimizerConfig(lr=1e-5, minibatches=4, epochs=2)
    """Optimizer of its loss; it starts untrained and needs a higher rate and more steps than the policy."""
    clip: float | None = Field(default=0.5, gt=0, le=MAX_FACTOR)
    """Maximum change of a value in one update before its squared error stops falling; null for no clip."""
    warmup: int = Field(default=0, ge=0, le=MAX_COUNT)
    """First iterations in which only the critic learns: an untrained critic predicts 0 for every state."""


class WriterUpdateConfig(Config):
    """REINFORCE on the answers of the policy as writer, a loss beside its own (RetroAgent Eq. 3 and 4)."""

    reward: Literal["prediction", "replay"] = "prediction"
    """Reward of an answer: ``prediction``: 1 if the reflection predicts the outcome of its episode, else 0;
    ``replay``: for the tokens of each lesson its gain in replays, known at the next update.
    """
    scale: float = Field(default=1.0, gt=0, le=MAX_FACTOR)
    """Factor of the reward, such as the environment's largest one."""
    baseline: Literal["batch", "none"] = "batch"
    """Subtracted baseline: the mean reward, or none (the paper). Without it, gains teach to write all that helps;
    with it, to leave out what helps less than the other lessons.
    """
    balance: bool = False
    """Weigh the predictions about successes and those about failures equally; otherwise a policy that seldom succeeds
    first learns to predict failure always.
    """
    weight: float = Field(default=1.0, gt=0, le=MAX_FACTOR)
    """Weight of the loss (lambda)."""
    clip: float | None = Field(default=None, gt=0, lt=1, exclude_if=lambda width: width is None)
    """Clip of the importance ratio at 1 - clip and 1 + clip, relative to the policy before the update: it bounds how
    far the steps of an update move the writer. Null is REINFORCE (the paper).
    """
    kl_coefficient: float = Field(default=0.0, ge=0, le=MAX_FACTOR, exclude_if=lambda weight: weight == 0)
    """Weight of the KL to the reference policy (k3), which keeps the writer near its warm start; with ``clip``."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.kl_coefficient and self.clip is None:
            remedy = "set update.writer.clip=0.2, or update.writer.kl_coefficient=0"
            raise ValueError(f"kl_coefficient belongs to the clipped loss: {remedy}")
        return self

    @model_validator(mode="after")
    def _predicting(self) -> Self:
        if self.balance and self.reward != "prediction":
            raise ValueError(f"balance=true weighs predictions, not {self.reward}: set update.writer.balance=false")
        return self


class UpdateConfig(Config):
    """Policy update of each iteration."""

    invalid_penalty: float = Field(default=0.0, ge=0, le=MAX_FACTOR)
    """Penalty subtracted from the reward of each turn whose action was not understood."""
    reward: RewardConfig = ExtrinsicConfig()
    """Rewards of an episode's turns."""
    advantage: AdvantageConfig = GrpoConfig()
    """Estimator of advantages."""
    loss: LossConfig = LossConfig()
    """Loss of the policy."""
    critic: CriticConfig | None = None
    """Model that values states; null for estimators that need no values."""
    writer: WriterUpdateConfig | None = Field(default=None, exclude_if=lambda writer: writer is None)
    """Training of the policy as writer; null for a writer that only changes with the policy."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """Optimizer of the policy."""
    packing: Literal["trie", "rows"] = Field(default="trie", exclude_if=lambda packing: packing == "trie")
    """``trie``: forward a token once however many rows begin with it; ``rows``: forward padded rows, for models whose
    layers do not support a trie.
    """
    deepspeed: DeepSpeedConfig = DeepSpeedConfig()
    """Processes and devices of the trainer."""

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        estimator, needed = self.advantage.type, self.advantage.needs_critic
        if needed and self.critic is None:
            raise ValueError(f"advantage.type={estimator} needs values: set update.critic={{}}, or another estimator")
        if needed is False and self.critic is not None:
            remedy = "set update.critic=null, or update.advantage={type: gae}"
            raise ValueError(f"advantage.type={estimator} does not use a critic: {remedy}")
        if estimator == "gae" and self.reward.type == "discounted":
            remedy = "set update.reward.type=extrinsic, and update.advantage.gamma_step"
            raise ValueError(f"advantage.type=gae discounts by itself: {remedy}")
        if estimator == "gae" and getattr(self.reward, "gamma", 1.0) < 1:
            remedy = "set update.reward.gamma=1.0, and update.advantage.gamma_step"
            raise ValueError(f"advantage.type=gae discounts by itself: {remedy}")
        if self.loss.kl_in == "reward" and self.loss.kl_coefficient == 0:
            remedy = "set update.loss.kl_in=loss, or update.loss.kl_coefficient=0.001"
            raise ValueError(f"loss.kl_in=reward with kl_coefficient=0 has no effect: {remedy}")
        return self

    def trains_writer(self, by: Literal["prediction", "replay"]) -> bool:
        """True if the policy learns to write from rewards of this kind."""
        return self.writer is not None and self.writer.reward == by

    def needs_scores(self) -> bool:
        """True if advantages need the trainer's scores of the episodes first."""
        return self.critic is not None or self.loss.kl_in == "reward"
