"""Changes of a run's bank from each revision to the next, found with few reads of the bank.

A table holds when each entry entered, was edited and left, so that the table of the revision before can mostly be
derived from it. The hash in the manifest proves that it is right; where it is not, as after an edit or before a
rollback, the bank is read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from coevo.lineage.revision.manifest import Manifest
from coevo.memory.bank.content_hash import content_hash
from coevo.memory.bank.diff import BankDiff, diff
from coevo.records.arrow import ENTRIES, table_to_entries

TABLE = "entries"
"""Table of a bank that holds its entries."""
ReadRows = Callable[[Manifest], pa.Table | None]
"""Rows of ``entries`` at a revision; None where they cannot be read."""


@dataclass(frozen=True, slots=True)
class KnownRows:
    """Rows of ``entries``, sorted by id, and their content hash."""

    rows: pa.Table
    hash: str


EMPTY = KnownRows(ENTRIES.empty_table(), content_hash(ENTRIES.empty_table()))
"""The bank before revision 0."""


@dataclass(frozen=True, slots=True)
class BankStep:
    """Change of the active entries at a revision, against the last one before it whose bank is known."""

    revision: int
    change: BankDiff


@dataclass(frozen=True, slots=True)
class BankWalk:
    """Changes over some revisions.

    Attributes:
        steps: changes, oldest first; revisions without any are left out.
        last: rows at the last revision whose bank is known; ``before`` where there is none.
        unknown: revisions whose bank is unknown.
    """

    steps: tuple[BankStep, ...]
    last: KnownRows
    unknown: tuple[int, ...]


def walk(manifests: Sequence[Manifest], before: KnownRows, read: ReadRows) -> BankWalk:
    """Find the changes of the bank at consecutive revisions.

    Args:
        manifests: of the revisions, oldest first.
        before: rows before the first of them.
        read: reads the bank of a revision.
    """
    steps, unknown = list[BankStep](), list[int]()
    last, rows, begins, wanted = before, None, -1, ""
    for manifest in reversed(manifests):
        recorded = manifest.tables[TABLE]
        if rows is not None and recorded == wanted:
            begins = manifest.revision
            continue
        derived = None if rows is None else _undone(rows, begins, partial(_has, recorded))
        older = derived[0] if derived is not None else before.rows if recorded == before.hash else read(manifest)
        if older is None:
            unknown.append(manifest.revision)
            continue
        if rows is None:
            last = KnownRows(older, recorded)
        else:
            steps.append(BankStep(begins, derived[1] if derived is not None else diff(older, rows)))
        rows, begins, wanted = older, manifest.revision, recorded
    if rows is not None and wanted != before.hash:
        derived = _undone(rows, begins, before.rows.equals)
        steps.append(BankStep(begins, derived[1] if derived is not None else diff(before.rows, rows)))
    changed = [step for step in reversed(steps) if step.change.added or step.change.edited or step.change.retired]
    return BankWalk(tuple(changed), last, tuple(reversed(unknown)))


def _has(wanted: str, rows: pa.Table) -> bool:
    return content_hash(rows) == wanted


def _undone(rows: pa.Table, revision: int, is_right: Callable[[pa.Table], bool]) -> tuple[pa.Table, BankDiff] | None:
    """Rows before the revision in which they began, and its change; None unless they are right."""
    created, edited, retired = (rows[name].to_numpy() for name in ("created", "edited", "retired"))
    entered, left = created == revision, retired == revision
    if np.any((edited == revision) & ~entered):
        return None
    at = rows.schema.get_field_index("retired")
    back = rows.set_column(at, rows.schema.field(at), pa.array(np.where(left, -1, retired), pa.int32()))
    older = back.filter(pa.array(~entered))
    if not is_right(older):
        return None
    added = table_to_entries(rows.filter(pa.array(entered & (retired < 0))))
    gone = table_to_entries(back.filter(pa.array(left & ~entered)))
    return older, BankDiff(tuple(added), (), tuple(gone))
