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


class AppendAdmissionConfig(Config):
    """Every candidate that the bank does not hold enters (RetroAgent section 3.3)."""

    type: Literal["append"]
    """How candidates are judged."""
    capacity: int | None = Field(default=None, ge=1)
    """Most entries of the bank; beyond it those of least utility leave, the oldest of equals. Null for no bound."""
    per_key: int | None = Field(default=None, ge=1)
    """Entries of a pool that are kept, the last ones (Reflexion: 3); null keeps all."""
    merge: float | None = Field(default=None, gt=0, le=1)
    """Likeness to an entry of the pool from which on a candidate becomes one more source of it (MemRL: 0.85)."""


AdmissionConfig = Annotated[ReplayAdmissionConfig | AppendAdmissionConfig, Field(discriminator="type")]
