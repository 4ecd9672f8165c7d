"""Compaction as part of writes, which bounds the number of fragments of a table.

A fragment holds the rows of one write; a row that is replaced later stays in it and becomes obsolete. Replacing rows in
place would leave a deletion file in every fragment at each write, and Lance's own compaction would rewrite the whole
table in a separate commit and prune versions. Instead, a write also rewrites the rows of small fragments, and fully
obsolete fragments are dropped, which removes nothing from older versions.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

ROW = "_rowid"
FRAGMENT = 32
"""Bits of a row id below the number of its fragment."""
MIN_FRAGMENTS = 8
"""Fragments of a table below which nothing is compacted."""
MIN_OBSOLETE_FRAGMENTS = 4
"""Obsolete fragments that justify a commit to drop them."""
SLACK = 64 * 1024
"""Bytes that a write may rewrite in addition to its own size."""


@dataclass(frozen=True)
class Compaction:
    """Rows that a write also rewrites, and fragments to drop after it; one of the two is empty."""

    rows: pa.Table
    idle: tuple[int, ...] = ()


def counting(rows: pa.Table) -> pa.Table:
    """Current rows of a table with row ids, sorted by id: the last row of each id."""
    rows = rows.sort_by([("id", "ascending"), (ROW, "ascending")])
    ids = rows["id"].combine_chunks()
    if len(ids) < 2:
        return rows
    last = pc.not_equal(ids[:-1], ids[1:])
    return rows.filter(pa.concat_arrays([last, pa.array([True])]))


def compaction(table: Any, rows: pa.Table, changed: pa.Table) -> Compaction:
    """Plan the compaction of a write.

    Args:
        table: LanceDB table, at the version of ``rows``.
        rows: current rows, unique by ``id``.
        changed: rows that the write replaces or adds.
    """
    placed = table.search().with_row_id(True).select(["id"]).to_arrow()
    present = np.unique(fragments(placed))
    last = counting(placed)
    staying = last.filter(pc.invert(pc.is_in(last["id"], value_set=changed["id"].combine_chunks())))
    held, sizes = np.unique(fragments(staying), return_counts=True)
    idle = np.setdiff1d(present, held)
    if len(idle) >= MIN_OBSOLETE_FRAGMENTS:
        return Compaction(rows.slice(0, 0), tuple(idle.tolist()))
    if len(held) < MIN_FRAGMENTS:
        return Compaction(rows.slice(0, 0))
    most = (changed.nbytes + SLACK) * rows.num_rows // rows.nbytes
    small = staying.filter(pa.array(np.isin(fragments(staying), smallest(held, sizes, most))))
    return Compaction(rows.filter(pc.is_in(rows["id"], value_set=small["id"].combine_chunks())))


def within(idle: Iterable[int]) -> str:
    """SQL condition that selects the rows of these fragments."""
    return " OR ".join(f"({ROW} >= {name << FRAGMENT} AND {ROW} < {(name + 1) << FRAGMENT})" for name in idle)


def fragments(placed: pa.Table) -> NDArray[np.int64]:
    """Fragment number of each row."""
    rows: NDArray[np.uint64] = placed[ROW].to_numpy()
    return rows.astype(np.int64) >> FRAGMENT


def smallest(names: NDArray[np.int64], sizes: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """The smallest fragments whose rows add up to at most ``most``."""
    order = np.argsort(sizes, kind="stable")
    return names[order][np.cumsum(sizes[order]) <= most]
