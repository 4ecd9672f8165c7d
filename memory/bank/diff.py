"""Differences of a bank between two revisions."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from coevo.memory.bank.compare_tables import split
from coevo.records.arrow import entries_to_table, table_to_entries
from coevo.records.entry import Entry


@dataclass(frozen=True, slots=True)
class BankDiff:
    """Differences between the active entries of two versions, each list by id.

    Attributes:
        added: entries active only in the new version.
        edited: (old, new) of entries active in both versions with different content.
        retired: entries active only in the old version, with their content there.
    """

    added: tuple[Entry, ...]
    edited: tuple[tuple[Entry, Entry], ...]
    retired: tuple[Entry, ...]


def diff(old: pa.Table, new: pa.Table) -> BankDiff:
    """Compare the active entries of two versions (``coevo.records.arrow.ENTRIES``, unique ids, in any order)."""
    added, was, edited, retired = map(_entries, split(_active(old), _active(new)))
    return BankDiff(added, tuple(zip(was, edited, strict=True)), retired)


def diff_entries(old: Sequence[Entry], new: Sequence[Entry]) -> BankDiff:
    """``diff`` of two lists of entries."""
    return diff(entries_to_table(old), entries_to_table(new))


def _active(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.less(rows["retired"], 0))


def _entries(rows: pa.Table) -> tuple[Entry, ...]:
    return tuple(table_to_entries(rows.sort_by("id")))
