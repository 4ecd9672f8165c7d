"""Admissions: an admission decides what a proposal changes in the bank."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from coevo.configs.bank.admission_config import UNPROVEN, AnyAdmissionConfig, OutsideAdmissionConfig
from coevo.configs.outside_part import Part, build
from coevo.memory.bank.change import Judged, Ruling
from coevo.memory.library import Library
from coevo.memory.writers.writer import Proposal
from coevo.records.entry import Entry
from coevo.utilities.part_registry import Registry


@dataclass(frozen=True, slots=True)
class Trial:
    """Fresh rollouts with candidates added to the bank, or entries removed from it.

    Attributes:
        added: entries added to those of the bank.
        sources: entries whose source tasks are played.
        removed: entries taken out of the bank.
        read: entries of the bank; the tasks that retrieved them are played.
        first: number of the first replica; an earlier replay has played those before.
    """

    added: Sequence[Entry] = ()
    sources: Sequence[Entry] = ()
    removed: Sequence[Entry] = ()
    read: Sequence[Entry] = ()
    first: int = 0


Replay = Callable[[Sequence[Trial], int], Sequence[Sequence[float]]]
"""``replay(trials, replicas)``: rewards of so many replicas of each task, trial by trial.

Trials with the same ``sources`` and ``read`` play the same tasks with the same draws in the same order, so that their
rewards pair by position. The reward of an episode that the environment lost is NaN; its pair says nothing.
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """Changes of the bank by one firing of the writer.

    Attributes:
        entries: new, edited and retired entries, in their new state.
        utility: new utility of entries, by id; new entries that are not in it start with that of ``bank.utility``.
        judged: batches of candidates with their verdicts by replay.
        left_out: measurements of entries, each by replays with and without it.
        operations: outcomes of edit operations.
        metrics: by full name, such as ``bank/admission/<name>``.
        begun: candidates whose trial begins; they are not in the bank.
        ended: ids of candidates whose trial is over.
    """

    entries: tuple[Entry, ...] = ()
    utility: dict[str, float] = field(default_factory=dict)
    judged: tuple[Judged, ...] = ()
    left_out: tuple[Judged, ...] = ()
    operations: tuple[Ruling, ...] = ()
    metrics: dict[str, float] = field(default_factory=dict)
    begun: tuple[Entry, ...] = ()
    ended: tuple[str, ...] = ()


class Admission(Protocol):
    """A rule of admission; equal proposals, libraries and rewards give equal decisions."""

    def decide(self, proposal: Proposal, library: Library, replay: Replay, revision: int) -> Decision:
        """Decide about a proposal. An admission without replay never calls ``replay``."""
        ...


class AdmissionPart(Part):
    """An admission of your own for ``bank.admission``: which of a proposal's candidates enter the bank, and which
    entries change or leave.

    Equal proposals, libraries and rewards give equal decisions: an object keeps nothing from one firing to the next.

    Attributes:
        edits: True if it carries out the operations of a writer that proposes some.
        needs_replay: True if it calls ``replay``; the environment must repeat then.
        unproven: how lessons enter without evidence, and the remedy, which each run reports at its start; None if a
            lesson enters only after it has shown a gain.
    """

    setting: ClassVar[str] = OutsideAdmissionConfig.setting
    edits: ClassVar[bool] = False
    needs_replay: ClassVar[bool] = False
    unproven: ClassVar[str | None] = UNPROVEN

    @abstractmethod
    def decide(self, proposal: Proposal, library: Library, replay: Replay, revision: int) -> Decision:
        """Decide about a proposal.

        Args:
            proposal: candidates, and operations of a writer that edits; a candidate may be in the bank already.
            library: active entries with their counters.
            replay: plays the tasks that candidates were written from, with them and without, see ``Replay``.
            revision: in which they enter.
        """


ADMISSIONS = Registry[Callable[[AnyAdmissionConfig], Admission]](
    "bank.admission.type",
    {
        "replay": "coevo.memory.admission.replay:admission",
        "within-group": "coevo.memory.admission.within_group:admission",
        "score": "coevo.memory.admission.score:admission",
        "append": "coevo.memory.admission.append:admission",
        "edits": "coevo.memory.admission.edits:admission",
    },
)


def admission_of(config: AnyAdmissionConfig) -> Admission:
    """The admission of a configuration."""
    if isinstance(config, OutsideAdmissionConfig):
        part: AdmissionPart = build(config)
        return part
    return ADMISSIONS.load(config.type)(config)
