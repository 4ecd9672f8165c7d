"""What became of a bank between two revisions."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from memory.compare import split
from records.arrow import table_to_entries
from records.entry import Entry


@dataclass(frozen=True, slots=True)
class BankDiff:
    """Differences between the active entries of two versions, each list by id.

    Attributes:
        added: active only in the new one.
        edited: (old, new) of entries active in both with other content.
        retired: active only in the old one, as they were there.
    """

    added: tuple[Entry, ...]
    edited: tuple[tuple[Entry, Entry], ...]
    retired: tuple[Entry, ...]


def diff(old: pa.Table, new: pa.Table) -> BankDiff:
    """Compare the active entries of two versions (``records.arrow.ENTRIES``, unique ids, in any order)."""
    added, was, edited, retired = map(_entries, split(_active(old), _active(new)))
    return BankDiff(added, tuple(zip(was, edited, strict=True)), retired)


def _active(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.less(rows["retired"], 0))


def _entries(rows: pa.Table) -> tuple[Entry, ...]:
    return tuple(table_to_entries(rows.sort_by("id")))
