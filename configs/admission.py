"""What becomes of candidate entries. The ``type`` names the module of ``memory.admission``."""

from typing import Annotated, Literal

from pydantic import Field

from configs.base import Config


class ReplayAdmissionConfig(Config):
    """Replay-validated admission (CoEvo-RL Eq. 7)."""

    type: Literal["replay"] = "replay"
    """How candidates are judged."""
    per: Literal["batch", "entry"] = "batch"
    """All candidates of a firing or none (the paper), or each candidate by its own gain."""
    delta: float = Field(default=0.0, ge=-1, le=1)
    """Least mean paired gain; the gain must exceed it."""
    replays: int = Field(default=8, ge=1)
    """Fresh rollouts a task and side, paired by common random numbers."""


class CapacityConfig(Config):
    """Most active entries of one zone and level."""

    strategy: int = Field(default=100, ge=1)
    """Of the strategy zone."""
    warning: int = Field(default=50, ge=1)
    """Of the warning zone."""


class ScoreAdmissionConfig(Config):
    """What is new enters while there is room, then only by what it is worth (SLEA-RL section 3.4)."""

    type: Literal["score"]
    """How candidates are judged."""
    capacity: CapacityConfig = CapacityConfig()
    """Entries that a zone holds of each level (C)."""
    novelty: float = Field(default=0.85, gt=0, le=1)
    """A candidate at least so similar to an entry of its zone and pool is a duplicate; 1 refuses equal texts only."""
    ties: Literal["replace", "refuse"] = "replace"
    """A candidate worth as much as the lowest entry of a full zone replaces the least useful such, or not (paper)."""


AdmissionConfig = Annotated[ReplayAdmissionConfig | ScoreAdmissionConfig, Field(discriminator="type")]
