"""The experience bank: retrieval, writing and admission of entries."""

from typing import Literal

from pydantic import Field

from configs.admission import AdmissionConfig, ReplayAdmissionConfig
from configs.base import Config
from configs.retrieval import AnyRetrievalConfig, TfidfConfig
from configs.writer import ContrastWriterConfig, WriterConfig


class UtilityUpdateConfig(Config):
    """Utility as a moving average: u <- (1 - rate) u + rate score, after each episode that retrieved the entry."""

    initial: float = Field(default=0.5, ge=-1, le=1)
    """Utility of a new entry."""
    rate: float = Field(default=0.05, gt=0, le=1)
    """Weight of the newest episode (beta of RetroAgent Eq. 8, alpha of MemRL)."""
    score: Literal["reward", "signed"] = "reward"
    """An episode's score: its reward, or 1 for a success and -1 for a failure."""


class BankConfig(Config):
    """How experience is kept and grown."""

    every: int = Field(default=20, ge=1)
    """Policy updates between two firings of the writer (Delta)."""
    key: Literal["scope", "kind", "task"] = "scope"
    """What a pool of entries is about: the environment's scope (a house), a kind of tasks, or a single task."""
    references: int = Field(default=0, ge=0)
    """Earlier successes, and as many failures, of a key that the writer may hold new episodes against."""
    retrieval: AnyRetrievalConfig = TfidfConfig()
    """How entries reach the prompt."""
    utility: UtilityUpdateConfig | None = None
    """How retrievals change an entry's utility; null leaves it as the admission set it."""
    writer: WriterConfig = ContrastWriterConfig()
    """Who writes candidates."""
    admission: AdmissionConfig = ReplayAdmissionConfig()
    """Which candidates enter."""
