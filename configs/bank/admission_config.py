"""Admission of candidate entries. ``coevo.memory.admission.admission`` lists the module of each ``type``."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from coevo.configs.base import MAX_COUNT, MAX_FACTOR, Config
from coevo.configs.outside_part import OutsidePartConfig, PartChoice

UNPROVEN = "nothing is replayed; to have replay judge them, set bank.admission={type: replay}"
"""Path of a lesson into the bank without evidence, and the remedy, where an admission says nothing else."""


class AdmissionConfig(Config):
    """Base of the configuration of every built-in admission.

    Attributes:
        edits: True if it carries out operations on entries.
        needs_replay: True if it plays tasks again, with candidates and without.
    """

    edits: ClassVar[bool] = False
    needs_replay: ClassVar[bool] = False

    @property
    def unproven(self) -> str | None:
        """Path of a lesson into the bank without evidence, and the remedy; None if replay must show a gain."""
        return UNPROVEN


class ReplayAdmissionConfig(AdmissionConfig):
    """Replay-validated admission, of each lesson by itself and with confidence.

    The rule of CoEvo-RL Eq. 7, by which harmful lessons enter beside helpful ones, is
    ``{per: batch, replays: 8, confidence: null}``.
    """

    needs_replay: ClassVar[bool] = True
    type: Literal["replay"] = "replay"
    """Kind of admission."""
    per: Literal["batch", "entry"] = "entry"
    """Each candidate by its own gain, or all candidates of a firing or none (the paper)."""
    delta: float = Field(default=0.0, ge=-1, le=1)
    """Least mean paired gain; the gain must exceed it."""
    replays: int = Field(default=64, ge=1, le=1000)
    """Most fresh rollouts per task and side, paired by common random numbers. With a confidence, a candidate that is
    admitted earlier is played no further."""
    confidence: float | None = Field(default=0.95, gt=0.5, lt=1)
    """Level of a lower bound of the mean paired gain, which must exceed delta. The bound holds over all firings that
    judge a lesson: one without gain enters with probability 1 - confidence at most. Null: the mean itself."""

    @property
    def unproven(self) -> str | None:
        """With a negative ``delta``, lessons enter that lower the reward."""
        return _lowering(self.delta)


def _lowering(delta: float) -> str | None:
    """Path into the bank of lessons that lower the reward, and the remedy; None if ``delta`` lets none in."""
    return f"delta={delta:g} lets in what lowers the reward; set delta=0 or more" if delta < 0 else None


class WithinGroupAdmissionConfig(AdmissionConfig):
    """Trial within the rollout budget: half of a training group plays with the candidate, half without.

    The groups are those of the candidate's source tasks, which take the place of newly drawn tasks. No episode is
    played in addition. Every such group counts, whether or not its treated half was shown the candidate.
    """

    type: Literal["within-group"]
    """Kind of admission."""
    candidates: int = Field(default=8, ge=1, le=10_000)
    """Most candidates on trial at a time; further ones are turned away, and may be proposed again."""
    iterations: int = Field(default=5, ge=1, le=1000)
    """Iterations that a candidate is on trial."""
    revisit: float = Field(default=0.5, gt=0, le=1)
    """Largest share of an iteration's tasks that are source tasks of candidates on trial."""
    delta: float = Field(default=0.0, ge=-1, le=1)
    """Least mean gap between matched halves; the gap must exceed it."""
    confidence: float | None = Field(default=None, gt=0.5, lt=1)
    """Level of a lower bound of the mean gap, which must exceed delta; it holds over all trials of a lesson. Null: the
    mean itself."""

    @property
    def unproven(self) -> str | None:
        """With a negative ``delta``, lessons enter that lower the reward."""
        return _lowering(self.delta)


class EditsAdmissionConfig(AdmissionConfig):
    """Edit operations carried out on pools of scored entries (JERP Eq. 27); needs the writer ``editor``.

    Entries enter without evidence: nothing is replayed, and an episode that earned 0 may teach them.
    """

    edits: ClassVar[bool] = True
    type: Literal["edits"]
    """Kind of admission."""
    initial: float = Field(default=1.0, gt=0, le=MAX_FACTOR)
    """Score of an added entry (s0)."""
    up: float = Field(default=1.0, gt=0, le=MAX_FACTOR)
    """Score added by a vote for an entry (delta+)."""
    down: float = Field(default=1.0, gt=0, le=MAX_FACTOR)
    """Score removed by a vote against it (delta-)."""
    threshold: float = Field(default=0.5, ge=-MAX_FACTOR, le=MAX_FACTOR)
    """Entries of a pool that score less are removed after its operations."""
    capacity: int = Field(default=32, ge=1, le=MAX_COUNT)
    """Most entries of a pool; the lowest scores beyond it are pruned."""

    @property
    def unproven(self) -> str | None:
        """Replay needs a writer that proposes entries, too."""
        return (
            "nothing is replayed; to have replay judge them, set bank.writer={type: quote-contrast} "
            "bank.admission={type: replay}"
        )

    @model_validator(mode="after")
    def _lasting(self) -> Self:
        if self.initial < self.threshold:
            raise ValueError(
                f"initial={self.initial:g} is below threshold={self.threshold:g}, so nothing that is added would stay: "
                f"set bank.admission.initial={self.threshold:g} or more"
            )
        return self


class AppendAdmissionConfig(AdmissionConfig):
    """Every candidate that the bank does not hold enters (RetroAgent section 3.3).

    Entries enter without evidence: nothing is replayed, and an episode that earned 0 may teach them.
    """

    type: Literal["append"]
    """Kind of admission."""
    capacity: int | None = Field(default=None, ge=1, le=MAX_COUNT)
    """Most entries of the bank; beyond it those of least utility leave, the oldest of equals. Null for no bound."""
    per_key: int | None = Field(default=None, ge=1, le=MAX_COUNT)
    """Entries of a pool that are kept, the last ones (Reflexion: 3); null keeps all."""
    merge: float | None = Field(default=None, gt=0, le=1)
    """Similarity to an entry of the pool from which on a candidate becomes one more source of it (MemRL: 0.85)."""


class CapacityConfig(Config):
    """Most active entries of one zone and level."""

    strategy: int = Field(default=100, ge=1, le=MAX_COUNT)
    """Of the strategy zone."""
    warning: int = Field(default=50, ge=1, le=MAX_COUNT)
    """Of the warning zone."""


class ScoreAdmissionConfig(AdmissionConfig):
    """New entries are admitted while there is room, then by their score alone (SLEA-RL section 3.4).

    Entries enter without evidence: nothing is replayed, and an episode that earned 0 may teach them.
    """

    type: Literal["score"]
    """Kind of admission."""
    capacity: CapacityConfig = CapacityConfig()
    """Entries that a zone holds of each level (C)."""
    novelty: float = Field(default=0.85, gt=0, le=1)
    """A candidate at least so similar to an entry of its zone and pool is a duplicate; 1 refuses equal texts only."""
    ties: Literal["replace", "refuse"] = "replace"
    """A candidate worth as much as the lowest entry of a full zone replaces the least useful such, or not (paper)."""


class OutsideAdmissionConfig(OutsidePartConfig):
    """An admission from another package: a class derived from ``coevo.AdmissionPart``."""

    setting: ClassVar[str] = "bank.admission"
    group: ClassVar[str] = "coevo.admission"
    stated: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "edits": (bool,),
        "needs_replay": (bool,),
        "unproven": (str, type(None)),
    }

    @property
    def edits(self) -> bool | None:
        """True if it carries out operations on entries; None as long as nobody has opened the part."""
        found: bool | None = self.states("edits")
        return found

    @property
    def needs_replay(self) -> bool | None:
        """True if it plays tasks again; None as long as nobody has opened the part."""
        found: bool | None = self.states("needs_replay")
        return found

    @property
    def unproven(self) -> str | None:
        """As of a built-in admission; as long as nobody has opened the part, nothing is known to be proven."""
        found: str | None = self.states("unproven") if self.is_open else UNPROVEN
        return found


AnyAdmissionConfig = Annotated[
    ReplayAdmissionConfig
    | ScoreAdmissionConfig
    | AppendAdmissionConfig
    | EditsAdmissionConfig
    | WithinGroupAdmissionConfig
    | OutsideAdmissionConfig,
    PartChoice(),
]


def notice(admission: AnyAdmissionConfig) -> str | None:
    """One line that a run reports at its start where lessons enter without evidence; None where they do not."""
    if admission.unproven is None:
        return None
    return f"bank.admission.type={admission.type} admits lessons without evidence: {admission.unproven}"
