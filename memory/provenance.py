"""Why an entry is what it is: who taught it, what replay and operations made of it, and how it has served since."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from configs.errors import CoevoError
from memory.change import Judged, Ruling
from memory.stats import Stats
from memory.store import BankView
from records.entry import Entry


@dataclass(frozen=True, slots=True)
class Retrieval:
    """An episode that had the entry in a prompt, and how it ended."""

    episode: str
    task: str
    revision: int
    success: bool


@dataclass(frozen=True, slots=True)
class Provenance:
    """The history of one entry.

    Attributes:
        entry: as it is; as it was proposed where it never entered.
        admitted: whether it ever entered the bank.
        judged: every batch that it was judged in, by revision.
        operations: what edit operations did to it, and what took it out, oldest first.
        stats: its counters.
        retrievals: where it was shown, in the order of the rows given.
    """

    entry: Entry
    admitted: bool
    judged: tuple[Judged, ...]
    operations: tuple[Ruling, ...]
    stats: Stats
    retrievals: tuple[Retrieval, ...]


def why(bank: BankView, entry: str, episodes: Iterable[Mapping[str, Any]] = ()) -> Provenance:
    """The provenance of the entry with this id; ``episodes`` are rows of ``records.arrow.EPISODES``.

    Of a row only ``id``, ``task_id``, ``revision``, ``success`` and ``turns[].retrieved`` are read. Raises
    ``CoevoError`` for an id that the bank has neither admitted nor judged.
    """
    judged = tuple(batch for batch in bank.judged() if entry in batch.verdict.candidates)
    kept = next((held for held in bank.entries() if held.id == entry), None)
    known = kept or next((each for batch in judged for each in batch.candidates if each.id == entry), None)
    if known is None:
        raise CoevoError(f"entry {entry!r} is not in this bank: `coevo bank show` lists the ids that are")
    return Provenance(
        entry=known,
        admitted=kept is not None,
        judged=judged,
        operations=tuple(ruling for ruling in bank.operations() if entry in ruling.entries),
        stats=bank.stats().get(entry, Stats(entry)),
        retrievals=tuple(_retrieval(row) for row in episodes if _shown(row, entry)),
    )


def _shown(row: Mapping[str, Any], entry: str) -> bool:
    return any(entry in turn["retrieved"] for turn in row["turns"])


def _retrieval(row: Mapping[str, Any]) -> Retrieval:
    return Retrieval(row["id"], row["task_id"], row["revision"], row["success"])
