"""Reward shaping: what an episode's turns are worth before advantages are computed."""

from typing import Annotated, Literal

from pydantic import Field

from configs.base import Config


class ExtrinsicConfig(Config):
    """The environment's own rewards; an episode's return is their plain sum."""

    type: Literal["extrinsic"] = "extrinsic"
    """How turns are rewarded."""


class DiscountedConfig(Config):
    """An episode's return is the discounted sum of its turns' rewards (JERP Eq. 5)."""

    type: Literal["discounted"]
    """How turns are rewarded."""
    gamma: float = Field(default=0.95, gt=0, le=1)
    """Discount of a turn."""
    spread: Literal["as-given", "uniform"] = "as-given"
    """``uniform``: every turn gets an equal share of the episode's reward (RetroAgent section 3.1)."""


class CapabilityEvolutionConfig(Config):
    """Discounted, plus progress beyond what the task's group once achieved (RetroAgent Eq. 5 and 6)."""

    type: Literal["capability-evolution"]
    """How turns are rewarded."""
    gamma: float = Field(default=0.95, gt=0, le=1)
    """Discount of a turn; the rewards are spread over the turns evenly."""
    potential: Literal["progress", "reflection"] = "progress"
    """What says how much of the task was completed: the environment, or the writer's reflection on the episode."""


class ProgressGuidedConfig(Config):
    """The same with success in the place of progress (RetroAgent Table 5)."""

    type: Literal["progress-guided"]
    """How turns are rewarded."""
    gamma: float = Field(default=0.95, gt=0, le=1)
    """Discount of a turn; the rewards are spread over the turns evenly."""


RewardConfig = Annotated[
    ExtrinsicConfig | DiscountedConfig | CapabilityEvolutionConfig | ProgressGuidedConfig, Field(discriminator="type")
]
