"""Who writes candidate entries. The ``type`` names the module of ``memory.writers``."""

from typing import Annotated, Literal

from pydantic import Field

from configs.base import Config


class ContrastWriterConfig(Config):
    """The built-in writer: contrastive pair, else success cluster, else failure cluster."""

    type: Literal["contrast"] = "contrast"
    """Who writes candidate entries."""
    buffer: int = Field(default=64, ge=1)
    """Most episodes a firing sees, contrastive pairs first."""
    candidates: int = Field(default=16, ge=1)
    """Most candidates of one firing."""


class ExtremesWriterConfig(Config):
    """Strategies from the episodes that earned most, warnings from those that earned least (SLEA-RL section 3.4)."""

    type: Literal["extremes"]
    """Who writes candidate entries."""
    trajectories: int = Field(default=5, ge=1)
    """Most episodes looked at on either side of the median reward (K_traj)."""
    strategies: int = Field(default=10, ge=0)
    """Most strategies of one firing (K_strat)."""
    warnings: int = Field(default=5, ge=0)
    """Most warnings of one firing (K_warn)."""


SCORING_WRITERS = ("contrast", "extremes")
"""Writers that say what a candidate is worth."""

WriterConfig = Annotated[ContrastWriterConfig | ExtremesWriterConfig, Field(discriminator="type")]
