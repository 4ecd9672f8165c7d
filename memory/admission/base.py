"""What an admission is: it decides what a proposal changes in the bank."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol, cast

from configs.admission import AnyAdmissionConfig
from memory.change import Judged, Ruling
from memory.library import Library
from memory.writers.base import Proposal
from records.entry import Entry


@dataclass(frozen=True, slots=True)
class Trial:
    """Fresh rollouts, with some entries more in the bank.

    Attributes:
        added: entries that the bank has besides its own.
        taught: entries whose tasks, those that they were written from, are played.
    """

    added: Sequence[Entry]
    taught: Sequence[Entry]


Replay = Callable[[Sequence[Trial], int], Sequence[Sequence[float]]]
"""``replay(trials, replicas)``: rewards of so many replicas of each task, trial by trial.

Trials with the same ``taught`` play the same tasks with the same draws in the same order, so their rewards pair by
position.
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a firing changes in the bank.

    Attributes:
        entries: rows as they are from now on: new, edited and retired entries.
        utility: by id, the utility that entries have from now on; entries that are new and not named here begin with
            that of ``bank.utility``.
        judged: batches of candidates with what replay said of them.
        operations: what became of edit operations.
        metrics: by full name.
    """

    entries: tuple[Entry, ...] = ()
    utility: dict[str, float] = field(default_factory=dict)
    judged: tuple[Judged, ...] = ()
    operations: tuple[Ruling, ...] = ()
    metrics: dict[str, float] = field(default_factory=dict)


class Admission(Protocol):
    """Decides; the same for the same proposal, library and rewards."""

    def decide(self, proposal: Proposal, library: Library, replay: Replay, revision: int) -> Decision:
        """What the proposal changes; whoever needs no replay never calls it."""
        ...


def admission_of(config: AnyAdmissionConfig) -> Admission:
    """The admission that a configuration names."""
    module = import_module(f"memory.admission.{config.type.replace('-', '_')}")
    return cast(Admission, module.admission(config))
