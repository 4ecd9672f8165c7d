"""Folding: a write takes the rows of small fragments along, so that a table never falls to pieces.

A fragment holds what one write brought. Many of them are slow to read, and every later write leaves a deletion file in
each whose rows it replaces. Lance's own compaction would rewrite the whole table in a commit of its own, and its call
prunes versions too; folding is part of the write, and takes nothing from an older version.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
    ids = placed["id"].filter(pa.array(_small(_fragments(placed), (changed.nbytes + SLACK) * len(rows) // rows.nbytes)))
    taken = pc.and_not(pc.is_in(rows["id"], value_set=ids), pc.is_in(rows["id"], value_set=changed["id"]))
    return rows.filter(taken)


def _fragments(placed: pa.Table) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """The fragment of each row: the upper half of its address."""
    return placed["_rowid"].to_numpy() >> np.uint64(32)


def _small(fragments: "np.ndarray[tuple[int], np.dtype[np.uint64]]", most: int) -> "np.ndarray[tuple[int], Any]":
    """For every row, whether its fragment is one of the smallest that have at most so many rows together."""
    names, sizes = np.unique(fragments, return_counts=True)
    order = np.argsort(sizes, kind="stable")
    return np.isin(fragments, names[order][np.cumsum(sizes[order]) <= most])
