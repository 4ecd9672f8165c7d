"""The policy update: reward shaping, advantages, loss, critic, optimizer and DeepSpeed."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, ValidationInfo, model_validator

from coevo.configs.base import MAX_COUNT, MAX_FACTOR, MAX_PROCESSES, MAX_SECONDS, MAX_TOKENS, Config
from coevo.configs.trust_settings import Trusted, is_stored
from coevo.configs.update.advantage_config import AdvantageConfig, GrpoConfig
from coevo.configs.update.loss import LossConfig
from coevo.configs.update.reward_config import ExtrinsicConfig, RewardConfig

OWNED = {
    "optimizer": "update.optimizer",
    "scheduler": "update.optimizer",
    "gradient_clipping": "update.optimizer.clip",
    "train_batch_size": "update.deepspeed.tokens",
    "train_micro_batch_size_per_gpu": "update.deepspeed.tokens",
    "gradient_accumulation_steps": "update.deepspeed.tokens",
    "bf16": "policy.dtype",
    "fp16": "policy.dtype",
}
"""Sections of DeepSpeed's settings that this configuration decides, with the key that decides each."""

STAGES = (0, 1, 2, 3)
"""Stages of ZeRO."""
SOURCES = Path(__file__).resolve().parents[2]
"""Root of the source tree."""


class DeepSpeedConfig(Config):
    """Processes of the trainer. Fields for several processes or a GPU are stored only if they are set."""

    zero_stage: Literal[0, 1, 2, 3] = 1
    """ZeRO stage: 0 partitions nothing, 1 the optimizer, 2 also its gradients at every micro-batch, 3 also the weights.
    The stage of a section ``zero_optimization`` in ``settings`` takes precedence.
    """
    tokens: int = Field(default=16384, ge=1, le=MAX_TOKENS)
    """Maximum number of tokens per micro-batch, each counted once however many rows begin with it; gradients accumulate
    over a minibatch.
    """
    timeout: float = Field(default=600.0, gt=0, le=MAX_SECONDS)
    """Seconds that an update, a save or a start of the trainer may take before it is killed."""
    processes: int = Field(default=1, ge=1, le=MAX_PROCESSES, exclude_if=lambda count: count == 1)
    """Processes that share the update's micro-batches; steps are the same as with one process."""
    device: Literal["cpu", "cuda"] = Field(default="cpu", exclude_if=lambda device: device == "cpu")
    """Device of the processes; each uses its own GPU."""
    activation_checkpointing: bool = Field(default=False, exclude_if=lambda on: not on)
    """Recompute activations inside a layer in the backward pass: less memory, a third more work."""
    settings: Annotated[dict[str, JsonValue] | None, Trusted("lets DeepSpeed write files and reach servers")] = Field(
        default=None, exclude_if=lambda settings: settings is None
    )
    """Further settings in DeepSpeed's own JSON, or a file that contains them; the content of the file is stored."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, values: Any, info: ValidationInfo) -> Any:
        if not isinstance(values, dict) or values.get("settings") is None:
            return values
        named = values["settings"]
        if isinstance(named, str) and is_stored(info):  # otherwise a run from elsewhere could read any file
            raise ValueError("settings: a run stores the content, not a file's name: write the settings themselves")
        settings = _settings(named) if isinstance(named, str) else named
        zero = settings.get("zero_optimization", {}) if isinstance(settings, dict) else {}
        read = values | {"settings": settings}
        if isinstance(zero, dict) and zero and values.get("zero_stage", 0) in STAGES:  # otherwise it is refused below
            read["zero_stage"] = zero.get("stage", 0)
        return read

    @model_validator(mode="after")
    def _owned(self) -> Self:
        for name in self.settings or {}:
            if name in OWNED:
                raise ValueError(f"settings.{name} is not allowed there: leave it out and set {OWNED[name]}")
        return self


def _settings(path: str) -> Any:
    """Content of a file; a relative path is looked up here, then beside the sources, where ``infra/deepspeed`` is."""
    file = next((each for each in (Path(path), SOURCES / path) if each.is_file()), Path(path))
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError:
        raise ValueError(f"settings={path!r} does not exist: name a file with DeepSpeed's settings in JSON") from None
    except ValueError as error:
        raise ValueError(f"settings={path!r} is not JSON: {error}") from None


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
