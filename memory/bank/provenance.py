"""Provenance of an entry: its teachers, replays and edit operations, and its use since."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from coevo.memory.bank.bank import BankView
from coevo.memory.bank.change import Judged, Ruling
from coevo.memory.stats import Stats
from coevo.records.entry import Entry
from coevo.utilities.errors import CoevoError


@dataclass(frozen=True, slots=True)
class Retrieval:
    """An episode with the entry in a prompt, and its outcome."""

    episode: str
    task: str
    revision: int
    success: bool


@dataclass(frozen=True, slots=True)
class Provenance:
    """The history of one entry.

    Attributes:
        entry: current content; if never admitted, the proposed content.
        admitted: whether it ever entered the bank.
        judged: batches in which it was judged, by revision.
        left_out: measurements of it by replays with and without it, by revision.
        operations: rulings about it, oldest first.
        stats: its counters.
        retrievals: episodes that retrieved it, in the order of the given rows.
    """

    entry: Entry
    admitted: bool
    judged: tuple[Judged, ...]
    left_out: tuple[Judged, ...]
    operations: tuple[Ruling, ...]
    stats: Stats
    retrievals: tuple[Retrieval, ...]


def why(bank: BankView, entry: str, episodes: Iterable[Mapping[str, Any]] = ()) -> Provenance:
    """Provenance of the entry with this id; ``episodes`` are rows of ``coevo.records.arrow.EPISODES``.

    Only ``id``, ``task_id``, ``revision``, ``success`` and ``turns[].retrieved`` of a row are read. Raises
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
        left_out=tuple(each for each in bank.left_out() if entry in each.verdict.candidates),
        operations=tuple(ruling for ruling in bank.operations() if entry in ruling.entries),
        stats=bank.stats().get(entry, Stats(entry)),
        retrievals=tuple(_retrieval(row) for row in episodes if _shown(row, entry)),
    )


def _shown(row: Mapping[str, Any], entry: str) -> bool:
    return any(entry in turn["retrieved"] for turn in row["turns"])


def _retrieval(row: Mapping[str, Any]) -> Retrieval:
    return Retrieval(row["id"], row["task_id"], row["revision"], row["success"])
