"""Reward shaping: what an episode's turns are worth before advantages are computed."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from configs.base import Config


class ShapingConfig(Config):
    """What every reward's configuration says of it."""

    whole: ClassVar[bool] = True
    """Whether a turn's worth depends on how its episode ended."""


class ExtrinsicConfig(ShapingConfig):
    """The environment's own rewards; an episode's return is their plain sum."""

    whole: ClassVar[bool] = False
    type: Literal["extrinsic"] = "extrinsic"
    """How turns are rewarded."""


class DiscountedConfig(ShapingConfig):
    """An episode's return is the discounted sum of its turns' rewards (JERP Eq. 5)."""

    type: Literal["discounted"]
    """How turns are rewarded."""
    gamma: float = Field(default=0.95, gt=0, le=1)
    """Discount of a turn."""
    spread: Literal["as-given", "uniform"] = "as-given"
    """``uniform``: every turn gets an equal share of the episode's reward (RetroAgent section 3.1)."""


class CapabilityEvolutionConfig(ShapingConfig):
    """Discounted, plus progress beyond what the task's group once achieved (RetroAgent Eq. 5 and 6)."""

    type: Literal["capability-evolution"]
    """How turns are rewarded."""
    gamma: float = Field(default=0.95, gt=0, le=1)
    """Discount of a turn; the rewards are spread over the turns evenly."""
    potential: Literal["progress", "reflection"] = "progress"
    """What says how much of the task was completed: the environment, or the writer's reflection on the episode."""


class ProgressGuidedConfig(ShapingConfig):
    """The same with success in the place of progress (RetroAgent Table 5)."""

    type: Literal["progress-guided"]
    """How turns are rewarded."""
    gamma: float = Field(default=0.95, gt=0, le=1)
    """Discount of a turn; the rewards are spread over the turns evenly."""


RewardConfig = Annotated[
    ExtrinsicConfig | DiscountedConfig | CapabilityEvolutionConfig | ProgressGuidedConfig, Field(discriminator="type")
]
