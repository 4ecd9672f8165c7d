"""Row-wise comparison of two Arrow tables, without Python objects per row."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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
