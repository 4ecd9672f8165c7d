"""Reward shaping: rewards of an episode's turns before advantages are computed."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from coevo.configs.base import Config


class ShapingConfig(Config):
    """Properties common to every reward's configuration."""

    whole: ClassVar[bool] = True
    """True if a turn's reward depends on the end of its episode."""


class ExtrinsicConfig(ShapingConfig):
    """The environment's own rewards; an episode's return is their plain sum."""

    whole: ClassVar[bool] = False
    type: Literal["extrinsic"] = "extrinsic"
    """Name of the reward."""


class DiscountedConfig(ShapingConfig):
    """An episode's return is the discounted sum of its turns' rewards (JERP Eq. 5)."""

    type: Literal["discounted"]
    """Name of the reward."""
    gamma: float = Field(default=0.95, gt=0, le=1)
    """Discount per turn."""
    spread: Literal["as-given", "uniform"] = "as-given"
    """``uniform``: every turn gets an equal share of the episode's reward (RetroAgent section 3.1)."""


class CapabilityEvolutionConfig(ShapingConfig):
    """Discounted reward plus progress beyond the task group's earlier best (RetroAgent Eq. 5 and 6)."""

    type: Literal["capability-evolution"]
    """Name of the reward."""
    gamma: float = Field(default=0.95, gt=0, le=1)
    """Discount per turn; the rewards are spread over the turns evenly."""
    potential: Literal["progress", "reflection"] = "progress"
    """Source of the completed fraction of the task: the environment, or the writer's reflection on the episode."""


class ProgressGuidedConfig(ShapingConfig):
    """Capability-evolution reward with success in place of progress (RetroAgent Table 5)."""

    type: Literal["progress-guided"]
    """Name of the reward."""
    gamma: float = Field(default=0.95, gt=0, le=1)
    """Discount per turn; the rewards are spread over the turns evenly."""


RewardConfig = Annotated[
    ExtrinsicConfig | DiscountedConfig | CapabilityEvolutionConfig | ProgressGuidedConfig, Field(discriminator="type")
]
