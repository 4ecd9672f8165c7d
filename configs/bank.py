"""The experience bank: retrieval, writing and admission of entries."""

from typing import Literal

from pydantic import Field

from configs.base import Config
from configs.retrieval import AnyRetrievalConfig, TfidfConfig


class ContrastWriterConfig(Config):
    """The built-in writer: contrastive pair, else success cluster, else failure cluster."""

    type: Literal["contrast"] = "contrast"
    """Who writes candidate entries."""
    buffer: int = Field(default=64, ge=1)
    """Most episodes a firing sees, contrastive pairs first."""
    candidates: int = Field(default=16, ge=1)
    """Most candidates of one firing."""


class ReplayAdmissionConfig(Config):
    """Replay-validated admission of the whole batch (CoEvo-RL Eq. 7)."""

    type: Literal["replay"] = "replay"
    """How candidates are judged."""
    delta: float = Field(default=0.0, ge=-1, le=1)
    """Least mean paired gain; the gain must exceed it."""
    replays: int = Field(default=8, ge=1)
    """Fresh rollouts a task and side, paired by common random numbers."""


class BankConfig(Config):
    """How experience is kept and grown."""

    every: int = Field(default=20, ge=1)
    """Policy updates between two firings of the writer (Delta)."""
    retrieval: AnyRetrievalConfig = TfidfConfig()
    """How entries reach the prompt."""
    writer: ContrastWriterConfig = ContrastWriterConfig()
    """Who writes candidates."""
    admission: ReplayAdmissionConfig = ReplayAdmissionConfig()
    """Which candidates enter."""
