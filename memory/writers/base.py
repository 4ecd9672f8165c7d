"""What a writer is: from the episodes since its last firing, and what the bank holds, it proposes changes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from statistics import fmean
from typing import Protocol, cast

from configs.writer import AnyWriterConfig
from memory.library import Library
from memory.references import References
from records.entry import Entry
from records.episode import Episode
from records.task import Key


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a writer sees.

    Attributes:
        episodes: training episodes since the last firing, in the order (iteration, task, replica).
        library: the active entries with their counters.
        references: earlier episodes by key; those of ``episodes`` are not yet among them.
        revision: the one in the making.
    """

    episodes: Sequence[Episode]
    library: Library
    references: References
    revision: int


@dataclass(frozen=True, slots=True)
class Edit:
    """One operation that an editor proposes (JERP Eq. 26), not yet read.

    Attributes:
        scope: key of the pool.
        line: in the syntax of ``memory.edits.syntax``, if the editor keeps to it.
        sources: ids of the episodes that it was drawn from.
    """

    scope: str
    line: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a writer proposes.

    Attributes:
        entries: candidates, best first.
        worth: by id of a candidate, what it is worth at birth, where the writer knows (z of SLEA-RL section 3.1).
        edits: operations on pools, in the order in which they are to be carried out; only an editor has any.
        counts: what the writer counted, for the metrics ``writer/<name>``.
    """

    entries: tuple[Entry, ...] = ()
    worth: dict[str, float] = field(default_factory=dict)
    edits: tuple[Edit, ...] = ()
    counts: dict[str, float] = field(default_factory=dict)


class Writer(Protocol):
    """Proposes; it changes nothing itself, and gives the same for the same evidence."""

    def write(self, evidence: Evidence) -> Proposal:
        """What should become of the bank."""
        ...


def worth(entries: Sequence[Entry], episodes: Sequence[Episode]) -> dict[str, float]:
    """By id, what the episodes that entries were written from have earned, in the mean (z of SLEA-RL section 3.1)."""
    rewards = {episode.id: episode.reward for episode in episodes}
    return {entry.id: fmean(rewards[source] for source in entry.sources) for entry in entries}


def writer_of(config: AnyWriterConfig, key: Key) -> Writer:
    """The writer that a configuration names; ``key`` says to which pool a task belongs."""
    module = import_module(f"memory.writers.{config.type.replace('-', '_')}")
    return cast(Writer, module.writer(config, key))
