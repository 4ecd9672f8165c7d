"""The experience bank: retrieval, writing and admission of entries."""

from typing import Literal, Self

from pydantic import Field, model_validator

from configs.admission import AnyAdmissionConfig, ReplayAdmissionConfig
from configs.base import MANY, Config
from configs.retrieval import AnyRetrievalConfig, TfidfConfig
from configs.writer import AnyWriterConfig, ContrastWriterConfig


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

    every: int = Field(default=20, ge=1, le=MANY)
    """Policy updates between two firings of the writer (Delta)."""
    key: Literal["scope", "kind", "scope+kind", "task"] = "scope"
    """What a pool of entries is about: the environment's scope (a house), a kind of tasks, both, or a single task."""
    references: int = Field(default=0, ge=0, le=1000)
    """Earlier successes, and as many failures, of a key that the writer may hold new episodes against."""
    retrieval: AnyRetrievalConfig = TfidfConfig()
    """How entries reach the prompt."""
    utility: UtilityUpdateConfig | None = None
    """How retrievals change an entry's utility; null leaves it as the admission set it."""
    writer: AnyWriterConfig = ContrastWriterConfig()
    """Who writes candidates."""
    admission: AnyAdmissionConfig = ReplayAdmissionConfig()
    """Which candidates enter."""

    @model_validator(mode="after")
    def _edited(self) -> Self:
        """Operations are proposed and carried out, or neither; and one part alone sets the scores."""
        edits = self.admission.type == "edits"
        if self.writer.type == "editor" and not edits:
            raise ValueError(
                f"writer.type=editor proposes operations, which admission.type={self.admission.type} cannot carry out: "
                "set admission={type: edits}"
            )
        if edits and self.writer.type != "editor":
            raise ValueError(
                f"admission.type=edits carries out operations, and writer.type={self.writer.type} proposes none: "
                "set writer={type: editor}"
            )
        if edits and self.utility is not None:
            raise ValueError("admission.type=edits scores entries by votes, utility by episodes: set utility=null")
        return self
