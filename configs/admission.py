"""What becomes of candidate entries. The ``type`` names the module of ``memory.admission``."""

from typing import Literal

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


AdmissionConfig = ReplayAdmissionConfig
