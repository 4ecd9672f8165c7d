"""Checking a bank: every recorded version of a table can be read and has the recorded content. Nothing is written.

Versions share their fragments, so reading each version whole takes time that grows with the square of their number.
Here a version is the one before it, with or without the fragments of which nothing counts any more, and the rows of its
new fragment; the number of rows and the content hash prove that. Where they do not, as after a restore, the version is
read whole.
"""

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from memory.canonical import content_hash
from memory.damage import UnreadableError, readable
from memory.folding import FRAGMENT, ROW, counting, fragments
from memory.versioned import VersionedTable, open_table

NEW_ROWS = 256
"""Rows of a new fragment that are looked for; a version with more is read whole."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A table, or one version of it, that is not what was recorded; ``version`` is None for the latest."""

    table: str
    version: int | None
    problem: str


def faults(bank: Path, wanted: Mapping[str, Collection[tuple[int, str]]]) -> Iterator[Fault]:
    """Recorded versions that cannot be read or have other content.

    Args:
        bank: directory of the tables.
        wanted: by table, the pairs (version, content hash) that were recorded.
    """
    # Most of the time goes by waiting for Lance.
    with ThreadPoolExecutor() as pool:
        for found in pool.map(lambda item: _faults(bank, *item), wanted.items()):
            yield from found


def stale(bank: Path, wanted: Mapping[str, str]) -> Iterator[Fault]:
    """Tables whose latest version does not have this content hash."""
    for name, content in wanted.items():
        try:
            with readable(name):
                found = VersionedTable(open_table(bank, name)).hash()
        except UnreadableError as error:
            yield Fault(name, None, f"cannot be read: {error.reason}")
        else:
            if found != content:
                yield Fault(name, None, f"has content {found[:12]}, not {content[:12]}")


def _faults(bank: Path, table: str, recorded: Collection[tuple[int, str]]) -> list[Fault]:
    try:
        with readable(table):
            reader = _Reader(open_table(bank, table))
    except UnreadableError as error:
        return [Fault(table, None, f"cannot be opened: {error.reason}")]
    problems = ((version, _problem(reader, table, version, content)) for version, content in sorted(recorded))
    return [Fault(table, version, problem) for version, problem in problems if problem is not None]


def _problem(reader: "_Reader", table: str, version: int, content: str) -> str | None:
    try:
        with readable(table):
            if reader.step(version) == content:
                return None
            found = reader.whole(version)
    except UnreadableError as error:
        return f"cannot be read: {error.reason}"
    return None if found == content else f"has content {found[:12]}, not the recorded {content[:12]}"


class _Reader:
    """Reads versions in ascending order and keeps the rows of the last one."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self._rows: pa.Table | None = None
        self._frontier = 0

    def whole(self, version: int) -> str:
        """Content hash of a version, read in full."""
        self._table.checkout(version)
        return self._keep(self._table.search().with_row_id(True).to_arrow())

    def step(self, version: int) -> str | None:
        """Content hash of a version from the one before and what is new; None where that does not fit."""
        if self._rows is None:
            return None
        self._table.checkout(version)
        first = self._frontier << FRAGMENT
        rows = pa.concat_tables([self._rows, self._query(range(first, first + NEW_ROWS))])
        count = self._table.count_rows()
        if rows.num_rows > count:
            rows = rows.filter(pa.array(np.isin(fragments(rows), fragments(counting(rows)))))
        return self._keep(rows) if rows.num_rows == count else None

    def _keep(self, rows: pa.Table) -> str:
        found = content_hash(counting(rows).drop_columns([ROW]))
        self._rows = rows.combine_chunks()
        if rows.num_rows:
            self._frontier = int(fragments(rows).max()) + 1
        return found

    def _query(self, rows: range) -> pa.Table:
        # Lance opens the fragments of listed row ids only; for a range of ids it opens all of them.
        query = self._table.search().where(f"{ROW} IN ({', '.join(map(str, rows))})").with_row_id(True)
        return query.to_arrow()
