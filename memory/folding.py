"""Folding: what a write does besides, so that a table falls to no more pieces than it must.

A fragment holds what one write brought; a row that a later one replaces stays in it, and counts no more. Replacing it
in place would leave a deletion file in every fragment with each write, and Lance's own compaction would rewrite the
whole table in a commit of its own, and prune versions too. Instead a write takes the rows of small fragments along, and
fragments of which nothing counts any more are dropped whole, which takes nothing from an older version.
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
FEW = 8
"""Fragments that a table may have without anything being folded."""
IDLE = 4
"""Fragments of which nothing counts that are worth a commit."""
SLACK = 64 * 1024
"""Bytes that a write may take along beyond as many as it changes."""


@dataclass(frozen=True)
class Folding:
    """What a write takes along, and the fragments to drop after it; one of the two is empty."""

    rows: pa.Table
    idle: tuple[int, ...] = ()


def counting(rows: pa.Table) -> pa.Table:
    """Of rows with their row ids those that count, sorted by id: the last of each."""
    rows = rows.sort_by([("id", "ascending"), (ROW, "ascending")])
    ids = rows["id"].combine_chunks()
    if len(ids) < 2:
        return rows
    last = pc.not_equal(ids[:-1], ids[1:])
    return rows.filter(pa.concat_arrays([last, pa.array([True])]))


def folding(table: Any, rows: pa.Table, changed: pa.Table) -> Folding:
    """What a write should do besides.

    Args:
        table: of LanceDB, at the version of these ``rows``.
        rows: all that count, unique by ``id``.
        changed: rows that the write replaces or adds.
    """
    placed = table.search().with_row_id(True).select(["id"]).to_arrow()
    present = np.unique(fragments(placed))
    last = counting(placed)
    staying = last.filter(pc.invert(pc.is_in(last["id"], value_set=changed["id"].combine_chunks())))
    held, sizes = np.unique(fragments(staying), return_counts=True)
    idle = np.setdiff1d(present, held)
    if len(idle) >= IDLE:
        return Folding(rows.slice(0, 0), tuple(idle.tolist()))
    if len(held) < FEW:
        return Folding(rows.slice(0, 0))
    most = (changed.nbytes + SLACK) * rows.num_rows // rows.nbytes
    small = staying.filter(pa.array(np.isin(fragments(staying), smallest(held, sizes, most))))
    return Folding(rows.filter(pc.is_in(rows["id"], value_set=small["id"].combine_chunks())))


def within(idle: Iterable[int]) -> str:
    """Condition that holds for the rows of these fragments."""
    return " OR ".join(f"({ROW} >= {name << FRAGMENT} AND {ROW} < {(name + 1) << FRAGMENT})" for name in idle)


def fragments(placed: pa.Table) -> NDArray[np.int64]:
    """The fragment of each row."""
    rows: NDArray[np.uint64] = placed[ROW].to_numpy()
    return rows.astype(np.int64) >> FRAGMENT


def smallest(names: NDArray[np.int64], sizes: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """The smallest fragments that have at most so many rows together."""
    order = np.argsort(sizes, kind="stable")
    return names[order][np.cumsum(sizes[order]) <= most]
