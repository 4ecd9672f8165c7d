"""Reward shaping: rewards of an episode's turns before advantages are computed."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from coevo.configs.base import Config
from coevo.configs.outside_part import OutsidePartConfig, PartChoice


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


class OutsideRewardConfig(OutsidePartConfig):
    """A reward from another package: a class derived from ``coevo.RewardPart``."""

    setting: ClassVar[str] = "update.reward"
    group: ClassVar[str] = "coevo.rewards"
    stated: ClassVar[Mapping[str, tuple[Any, ...]]] = {"whole": (bool,)}

    @property
    def whole(self) -> bool | None:
        """True if a turn's reward depends on the end of its episode; None as long as nobody has opened the part."""
        found: bool | None = self.states("whole")
        return found


RewardConfig = Annotated[
    ExtrinsicConfig | DiscountedConfig | CapabilityEvolutionConfig | ProgressGuidedConfig | OutsideRewardConfig,
    PartChoice(),
]
