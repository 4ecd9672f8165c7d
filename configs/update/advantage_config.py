"""Advantages: estimators that turn rewards into policy updates, selected by ``type``."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from coevo.configs.base import MAX_FACTOR, Config
from coevo.configs.outside_part import OutsidePartConfig, PartChoice


class EstimatorConfig(Config):
    """Properties common to every estimator's configuration."""

    grouped: ClassVar[bool] = True
    """True if an episode is compared with the others of its task."""
    needs_critic: ClassVar[bool] = False
    """True if the estimator needs values of states."""


class GrpoConfig(EstimatorConfig):
    """Group-relative advantages (CoEvo-RL Eq. 6)."""

    type: Literal["grpo"] = "grpo"
    """Name of the estimator."""
    ddof: Literal[0, 1] = 1
    """Delta degrees of freedom of the group's standard deviation."""
    epsilon: float = Field(default=1e-6, gt=0, le=1)
    """Added to the standard deviation."""
    drop_zero_variance: bool = True
    """Leave groups without variance out of the update; only the KL term would act on their tokens."""


class MeanConfig(EstimatorConfig):
    """Return minus the group's mean, without scaling (Dr. GRPO)."""

    type: Literal["mean"]
    """Name of the estimator."""
    drop_zero_variance: bool = True
    """Leave groups without variance out of the update."""


class RlooConfig(EstimatorConfig):
    """Return of each episode minus the mean of the others of its group (RLOO)."""

    type: Literal["rloo"]
    """Name of the estimator."""
    drop_zero_variance: bool = True
    """Leave groups without variance out of the update."""


class ReinforceConfig(EstimatorConfig):
    """The return itself, without groups (REINFORCE)."""

    grouped: ClassVar[bool] = False
    type: Literal["reinforce"]
    """Name of the estimator."""
    baseline: Literal["batch", "none"] = "batch"
    """Baseline that is subtracted: the mean return of the iteration's episodes, or none."""


class GigpoConfig(EstimatorConfig):
    """Group-relative advantages of the episode plus those of its steps (GiGPO; SLEA-RL Eq. 5 and 6)."""

    type: Literal["gigpo"]
    """Name of the estimator."""
    weight: float = Field(default=1.0, ge=0, le=MAX_FACTOR)
    """Weight of the step term (w)."""
    gamma: float = Field(default=0.95, gt=0, le=1)
    """Discount per turn in the step returns."""
    mode: Literal["mean_norm", "mean_std_norm"] = "mean_norm"
    """``mean_std_norm``: divide both terms by their standard deviation."""
    anchor: Literal["observation", "cluster"] = "observation"
    """Groups of steps that are compared: equal observation texts, or the same observation cluster."""
    ddof: Literal[0, 1] = 1
    """Delta degrees of freedom of the standard deviations."""
    epsilon: float = Field(default=1e-6, gt=0, le=1)
    """Added to the standard deviations."""
    drop_zero_variance: bool = True
    """Leave groups without variance, in episodes and steps, out of the update."""


class GaeConfig(EstimatorConfig):
    """Generalised advantage estimation over action tokens, with a discount for turns and one for tokens.

    Context-lite Eq. 2.
    """

    grouped: ClassVar[bool] = False
    needs_critic: ClassVar[bool] = True
    type: Literal["gae"]
    """Name of the estimator."""
    gamma_step: float = Field(default=0.99, gt=0, le=1)
    """Discount from the last token of a turn to the next turn."""
    lambda_step: float = Field(default=0.95, ge=0, le=1)
    """Trace decay from the last token of a turn to the next turn."""
    gamma_token: float = Field(default=1.0, gt=0, le=1)
    """Discount from token to token within a turn."""
    lambda_token: float = Field(default=1.0, ge=0, le=1)
    """Trace decay from token to token within a turn."""
    whiten: bool = True
    """Scale the advantages of all action tokens to mean 0 and deviation 1, after computing the critic's targets."""


class OutsideAdvantageConfig(OutsidePartConfig):
    """An estimator from another package: a class derived from ``coevo.AdvantagePart``."""

    setting: ClassVar[str] = "update.advantage"
    group: ClassVar[str] = "coevo.advantages"
    stated: ClassVar[Mapping[str, tuple[Any, ...]]] = {"grouped": (bool,), "needs_critic": (bool,)}

    @property
    def grouped(self) -> bool | None:
        """True if an episode is compared with the others of its task; None as long as nobody has opened the part."""
        found: bool | None = self.states("grouped")
        return found

    @property
    def needs_critic(self) -> bool | None:
        """True if the estimator needs values of states; None as long as nobody has opened the part."""
        found: bool | None = self.states("needs_critic")
        return found


AdvantageConfig = Annotated[
    GrpoConfig | MeanConfig | RlooConfig | ReinforceConfig | GigpoConfig | GaeConfig | OutsideAdvantageConfig,
    PartChoice(),
]
