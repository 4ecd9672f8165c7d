"""The experience bank: retrieval, writing and admission of entries."""

from typing import Literal, Self

from pydantic import Field, model_validator

from coevo.configs.bank.admission_config import AnyAdmissionConfig, ReplayAdmissionConfig
from coevo.configs.bank.retrieval_config import AnyRetrievalConfig, TfidfConfig
from coevo.configs.bank.writer import AnyWriterConfig, QuoteContrastConfig
from coevo.configs.base import MAX_COUNT, Config


class UtilityUpdateConfig(Config):
    """Utility as a moving average: u <- (1 - rate) u + rate score, after each episode that retrieved the entry."""

    initial: float = Field(default=0.5, ge=-1, le=1)
    """Utility of a new entry."""
    rate: float = Field(default=0.05, gt=0, le=1)
    """Weight of the newest episode (beta of RetroAgent Eq. 8, alpha of MemRL)."""
    score: Literal["reward", "signed"] = "reward"
    """Score of an episode: ``reward``: its reward; ``signed``: 1 for a success, -1 for a failure."""


class RetirementConfig(Config):
    """Retirement of entries by replay without them, by disuse, and by capacity.

    Their history stays, and they may enter again. The bank keeps what each replay measured: the entry's credit, by
    leaving it out.
    """

    delta: float | None = Field(default=0.05, ge=-1, le=1)
    """Most mean reward that replays may lose without an entry (E without e >= E - delta) for it to retire.

    All measurements since it entered must also rule out a gain of delta + 0.1. Null measures entries and retires none
    by replay.
    """
    confidence: float = Field(default=0.95, gt=0.5, lt=1, exclude_if=lambda level: level == 0.95)
    """Level of that bound, over all measurements of an entry's life: one with a gain of at least delta + 0.1 retires
    with probability 1 - confidence at most."""
    replays: int = Field(default=32, ge=1, le=1000)
    """Paired replays a task and side: enough for a look of 32 pairs where one task alone retrieved an entry.

    With fewer, an entry that is no longer true stays for many more firings.
    """
    entries: int = Field(default=4, ge=0, le=10_000)
    """Most entries that a firing measures, of those that its episodes retrieved; 0 for none.

    Those that waited longest come first; up to half are entries that the last measurement made doubtful.
    """
    unseen: int | None = Field(default=None, ge=1, le=MAX_COUNT, exclude_if=lambda most: most is None)
    """Firings in a row without an episode that retrieved an entry, for it to retire. Null for no limit."""
    capacity: int | None = Field(default=None, ge=1, le=MAX_COUNT)
    """Most active entries; beyond it those that ``beyond`` names retire. Null for no bound."""
    beyond: Literal["least-useful", "random"] = Field(
        default="least-useful", exclude_if=lambda which: which == "least-useful"
    )
    """Entries that retire beyond the capacity: those whose readers succeed least, or drawn ones (a control)."""


class BankConfig(Config):
    """Storage and growth of experience."""

    every: int = Field(default=20, ge=1, le=MAX_COUNT)
    """Policy updates between two firings of the writer (Delta)."""
    key: Literal["scope", "kind", "scope+kind", "task"] = "scope"
    """Key of a pool of entries: the environment's scope (a house), a kind of tasks, both, or a single task."""
    references: int = Field(default=0, ge=0, le=1000)
    """Earlier successes, and as many failures, per key that the writer can compare new episodes with."""
    retrieval: AnyRetrievalConfig = TfidfConfig()
    """Selection of entries for the prompt."""
    utility: UtilityUpdateConfig | None = None
    """Update of an entry's utility by retrievals; null leaves it as the admission set it."""
    writer: AnyWriterConfig = QuoteContrastConfig()
    """Source of candidates."""
    admission: AnyAdmissionConfig = ReplayAdmissionConfig()
    """Rule that decides which candidates enter."""
    retirement: RetirementConfig | None = Field(default=None, exclude_if=lambda found: found is None)
    """Rule that decides which entries leave; null leaves that to the admission."""

    @model_validator(mode="after")
    def _edited(self) -> Self:
        """Check that operations are both proposed and carried out."""
        if self.writer.edits and self.admission.edits is False:
            raise ValueError(
                f"writer.type={self.writer.type} proposes operations, but admission.type={self.admission.type} cannot "
                "apply them: set bank.admission={type: edits}"
            )
        if self.admission.edits and self.writer.edits is False:
            raise ValueError(
                f"admission.type={self.admission.type} applies operations, but writer.type={self.writer.type} proposes "
                "none: set bank.writer={type: quote-editor}"
            )
        return self

    @model_validator(mode="after")
    def _scored_once(self) -> Self:
        """Check that only one part sets the scores of edited entries."""
        edits = self.admission.type == "edits"
        if edits and self.retirement is not None:
            raise ValueError("admission.type=edits removes entries by their scores: set bank.retirement=null")
        if edits and self.utility is not None:
            raise ValueError("admission.type=edits scores by votes, and utility by episodes: set bank.utility=null")
        return self
