"""Differences of a bank between two revisions.

Tables are compared row by row in Arrow, without Python objects per row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from coevo.records.arrow import entries_to_table, table_to_entries
from coevo.records.entry import Entry

Mask = NDArray[np.bool_]


def changed_rows(held: pa.Table, wanted: pa.Table) -> pa.Table:
    """Rows of ``wanted`` that ``held`` lacks or holds differently: edited ones first, then new ones.

    Args:
        held: rows with unique ``id``.
        wanted: rows of the same schema; the last row of each id counts.
    """
    last = {name: row for row, name in enumerate(wanted["id"].to_pylist())}
    wanted = wanted.take(pa.array(last.values(), pa.int64()))
    old, new, before = _paired(held, wanted)
    return pa.concat_tables([old.filter(pa.array(differing(before, old))), new])


def split(old: pa.Table, new: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table, pa.Table]:
    """(added, was, edited, removed) between two tables with unique ids and one schema, in their original order.

    Rows of ``was`` and ``edited`` are paired; equal rows are omitted.
    """
    common, added, before = _paired(old, new)
    edited = pa.array(differing(before, common))
    removed = old.filter(pc.invert(pc.is_in(old["id"], value_set=_ids(new))))
    return added, before.filter(edited), common.filter(edited), removed


def differing(old: pa.Table, new: pa.Table) -> Mask:
    """Mask of rows whose values differ; the tables have one schema, equal length and no nulls."""
    return _unequal(old.to_struct_array().combine_chunks(), new.to_struct_array().combine_chunks())


def _paired(old: pa.Table, new: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Rows of ``new`` whose id ``old`` has, the other rows, and the rows of ``old`` paired with the first."""
    at = pc.index_in(new["id"], value_set=_ids(old)).combine_chunks()
    known = at.is_valid()
    return new.filter(known), new.filter(pc.invert(known)), old.take(at.drop_null())


def _ids(table: pa.Table) -> pa.Array:
    return table["id"].combine_chunks()


def _unequal(old: pa.Array, new: pa.Array) -> Mask:
    if pa.types.is_struct(new.type):
        found = np.zeros(len(new), dtype=np.bool_)
        for before, after in zip(old.flatten(), new.flatten(), strict=True):
            found |= _unequal(before, after)
        return found
    if pa.types.is_list(new.type):
        return _unequal_lists(old, new)
    return np.asarray(pc.not_equal(old, new).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _unequal_lists(old: pa.ListArray, new: pa.ListArray) -> Mask:
    found = _unequal(old.value_lengths(), new.value_lengths())
    alike = pa.array(~found)
    before, after = old.filter(alike), new.filter(alike)
    elements = _unequal(before.flatten(), after.flatten())
    rows = np.flatnonzero(~found)[after.value_parent_indices().to_numpy()]
    found[rows[elements]] = True
    return found


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
