"""What becomes of candidate entries. The ``type`` names the module of ``memory.admission``."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from configs.base import FACTOR, MANY, Config


class ReplayAdmissionConfig(Config):
    """Replay-validated admission (CoEvo-RL Eq. 7)."""

    type: Literal["replay"] = "replay"
    """How candidates are judged."""
    per: Literal["batch", "entry"] = "batch"
    """All candidates of a firing or none (the paper), or each candidate by its own gain."""
    delta: float = Field(default=0.0, ge=-1, le=1)
    """Least mean paired gain; the gain must exceed it."""
    replays: int = Field(default=8, ge=1, le=1000)
    """Fresh rollouts a task and side, paired by common random numbers."""


class EditsAdmissionConfig(Config):
    """Edit operations carried out on pools of scored entries (JERP Eq. 27); needs the writer ``editor``."""

    type: Literal["edits"]
    """How proposals are judged."""
    initial: float = Field(default=1.0, gt=0, le=FACTOR)
    """Score of an added entry (s0)."""
    up: float = Field(default=1.0, gt=0, le=FACTOR)
    """What a vote for an entry adds to its score (delta+)."""
    down: float = Field(default=1.0, gt=0, le=FACTOR)
    """What a vote against it takes off (delta-)."""
    threshold: float = Field(default=0.5, ge=-FACTOR, le=FACTOR)
    """Entries of a pool that score less are removed after its operations."""
    capacity: int = Field(default=32, ge=1, le=MANY)
    """Most entries of a pool; the lowest scores beyond it are pruned."""

    @model_validator(mode="after")
    def _lasting(self) -> Self:
        if self.initial < self.threshold:
            raise ValueError(
                f"initial={self.initial:g} is below threshold={self.threshold:g}, so nothing that is added would stay: "
                f"set initial={self.threshold:g} or more"
            )
        return self


class AppendAdmissionConfig(Config):
    """Every candidate that the bank does not hold enters (RetroAgent section 3.3)."""

    type: Literal["append"]
    """How candidates are judged."""
    capacity: int | None = Field(default=None, ge=1, le=MANY)
    """Most entries of the bank; beyond it those of least utility leave, the oldest of equals. Null for no bound."""
    per_key: int | None = Field(default=None, ge=1, le=MANY)
    """Entries of a pool that are kept, the last ones (Reflexion: 3); null keeps all."""
    merge: float | None = Field(default=None, gt=0, le=1)
    """Likeness to an entry of the pool from which on a candidate becomes one more source of it (MemRL: 0.85)."""


class CapacityConfig(Config):
    """Most active entries of one zone and level."""

    strategy: int = Field(default=100, ge=1, le=MANY)
    """Of the strategy zone."""
    warning: int = Field(default=50, ge=1, le=MANY)
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


AnyAdmissionConfig = Annotated[
    ReplayAdmissionConfig | ScoreAdmissionConfig | AppendAdmissionConfig | EditsAdmissionConfig,
    Field(discriminator="type"),
]
