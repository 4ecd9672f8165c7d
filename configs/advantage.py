"""Advantages: how rewards become what the policy is pushed by. The union is told apart by ``type``."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from configs.base import FACTOR, Config


class EstimatorConfig(Config):
    """What every estimator's configuration says of it."""

    grouped: ClassVar[bool] = True
    """Whether an episode is compared with the others of its task."""
    needs_critic: ClassVar[bool] = False
    """Whether it needs values of states."""


class GrpoConfig(EstimatorConfig):
    """Group-relative advantages (CoEvo-RL Eq. 6)."""

    type: Literal["grpo"] = "grpo"
    """Which estimator."""
    ddof: Literal[0, 1] = 1
    """Delta degrees of freedom of the group's standard deviation."""
    epsilon: float = Field(default=1e-6, gt=0, le=1)
    """Added to the standard deviation."""
    drop_zero_variance: bool = True
    """Leave groups that teach nothing out of the update; their tokens would only feel the KL term."""


class MeanConfig(EstimatorConfig):
    """The group's mean taken off, and nothing else (Dr. GRPO)."""

    type: Literal["mean"]
    """Which estimator."""
    drop_zero_variance: bool = True
    """Leave groups that teach nothing out of the update."""


class RlooConfig(EstimatorConfig):
    """Each episode against the mean of the others of its group (RLOO)."""

    type: Literal["rloo"]
    """Which estimator."""
    drop_zero_variance: bool = True
    """Leave groups that teach nothing out of the update."""


class ReinforceConfig(EstimatorConfig):
    """The return itself, without groups (REINFORCE)."""

    grouped: ClassVar[bool] = False
    type: Literal["reinforce"]
    """Which estimator."""
    baseline: Literal["batch", "none"] = "batch"
    """What is taken off: the mean return of the iteration's episodes, or nothing."""


class GigpoConfig(EstimatorConfig):
    """Group-relative advantages of the episode plus those of its steps (GiGPO; SLEA-RL Eq. 5 and 6)."""

    type: Literal["gigpo"]
    """Which estimator."""
    weight: float = Field(default=1.0, ge=0, le=FACTOR)
    """Weight of the step term (w)."""
    gamma: float = Field(default=0.95, gt=0, le=1)
    """Discount of a turn in the step returns."""
    mode: Literal["mean_norm", "mean_std_norm"] = "mean_norm"
    """Whether both terms are divided by their standard deviation."""
    anchor: Literal["observation", "cluster"] = "observation"
    """Steps compared with each other: those that saw the same text, or those of the same observation cluster."""
    ddof: Literal[0, 1] = 1
    """Delta degrees of freedom of the standard deviations."""
    epsilon: float = Field(default=1e-6, gt=0, le=1)
    """Added to the standard deviations."""
    drop_zero_variance: bool = True
    """Leave groups that teach nothing, in episodes and steps, out of the update."""


class GaeConfig(EstimatorConfig):
    """Generalised advantage estimation over action tokens, with a discount for turns and one for tokens.

    Context-lite Eq. 2.
    """

    grouped: ClassVar[bool] = False
    needs_critic: ClassVar[bool] = True
    type: Literal["gae"]
    """Which estimator."""
    gamma_step: float = Field(default=0.99, gt=0, le=1)
    """Discount from the last token of a turn to the next turn."""
    lambda_step: float = Field(default=0.95, ge=0, le=1)
    """Trace decay from the last token of a turn to the next turn."""
    gamma_token: float = Field(default=1.0, gt=0, le=1)
    """Discount from token to token within a turn."""
    lambda_token: float = Field(default=1.0, ge=0, le=1)
    """Trace decay from token to token within a turn."""
    whiten: bool = True
    """Bring the advantages of all action tokens to mean 0 and deviation 1, after the critic's targets are made."""


AdvantageConfig = Annotated[
    GrpoConfig | MeanConfig | RlooConfig | ReinforceConfig | GigpoConfig | GaeConfig, Field(discriminator="type")
]
