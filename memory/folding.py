"""Folding: a write takes the rows of small fragments along, so that a table never falls to pieces.

A fragment holds what one write brought. Many of them are slow to read, and every later write leaves a deletion file in
each whose rows it replaces. Lance's own compaction would rewrite the whole table in a commit of its own, and its call
prunes versions too; folding is part of the write, and takes nothing from an older version.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

FEW = 8
"""Fragments that a table may have without anything being folded."""
SLACK = 64 * 1024
"""Bytes that a write may take along beyond as many as it changes."""


def folded(table: Any, rows: pa.Table, changed: pa.Table) -> pa.Table:
    """Rows that a write of ``changed`` takes along: all of some small fragments, smallest first, or none.

    Args:
        table: of LanceDB, at the version with these ``rows``.
        rows: all of them, unique by ``id``.
        changed: rows that the write replaces or adds.
    """
    if table.stats()["fragment_stats"]["num_fragments"] <= FEW:
        return rows.slice(0, 0)
    placed = table.search().with_row_id(True).select(["id"]).to_arrow()
    # The upper half of a row's address names its fragment.
    fragments = placed["_rowid"].to_numpy() >> np.uint64(32)
    most = (changed.nbytes + SLACK) * rows.num_rows // rows.nbytes
    ids = placed["id"].filter(pa.array(_small(fragments, most)))
    others = pc.invert(pc.is_in(rows["id"], value_set=changed["id"]))
    return rows.filter(pc.and_(pc.is_in(rows["id"], value_set=ids), others))


def _small(fragments: NDArray[np.uint64], most: int) -> NDArray[np.bool_]:
    """For every row, whether its fragment is one of the smallest that have at most so many rows together."""
    names, sizes = np.unique(fragments, return_counts=True)
    order = np.argsort(sizes, kind="stable")
    return np.isin(fragments, names[order][np.cumsum(sizes[order]) <= most])
