"""Checks of a bank: every recorded version of a table can be read and has the recorded content. Read-only.

Versions share their fragments, so the time to read each version in full grows with the square of their number.
Instead, a version is built from the previous one, with or without its obsolete fragments, plus the rows of its new
fragment; row count and content hash prove the result. If they do not match, as after a restore, the version is read in
full.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from coevo.memory.bank.compaction import FRAGMENT, ROW, counting, fragments
from coevo.memory.bank.content_hash import content_hash
from coevo.memory.bank.lance_errors import UnreadableError, readable
from coevo.memory.bank.lance_files import files, manifest_name, manifests, mirror
from coevo.memory.bank.opening import existing, require_files, require_openable
from coevo.memory.bank.table import VersionedTable

NEW_ROWS = 256
"""Rows of a new fragment that are queried; a version with more is read in full."""


@dataclass(frozen=True, slots=True)
class TableFault:
    """A table, or one version of it, that differs from its record; ``version`` is None for the latest."""

    table: str
    version: int | None
    problem: str


def faults(bank: Path, wanted: Mapping[str, Collection[tuple[int, str]]]) -> list[TableFault]:
    """Recorded versions that cannot be read or have other content.

    Args:
        bank: directory of the tables.
        wanted: recorded pairs (version, content hash), by table.
    """
    return asyncio.run(_all_faults(bank, wanted))


def stale(bank: Path, wanted: Mapping[str, str]) -> Iterator[TableFault]:
    """Tables whose latest version has another content hash."""
    for name, content in wanted.items():
        try:
            found = VersionedTable(bank, name).hash()
        except UnreadableError as error:
            yield TableFault(name, None, f"cannot be read: {error.reason}")
        else:
            if found != content:
                yield TableFault(name, None, f"has content {found[:12]}, not {content[:12]}")


async def _all_faults(bank: Path, wanted: Mapping[str, Collection[tuple[int, str]]]) -> list[TableFault]:
    # Reading mostly waits for Lance, so tables are read concurrently.
    found = await asyncio.gather(*(_faults(bank, name, recorded) for name, recorded in wanted.items()))
    return [fault for of_table in found for fault in of_table]


async def _faults(bank: Path, table: str, recorded: Collection[tuple[int, str]]) -> list[TableFault]:
    found: list[TableFault] = []
    with TemporaryDirectory(prefix="coevo-") as scratch:
        try:
            reader = _Reader(bank, await _open(bank, table))
        except UnreadableError as error:
            found = [TableFault(table, None, f"cannot be opened: {error.reason}")]
            if not (bank / f"{table}.lance").is_dir():
                return found
            reader = _Reader(bank, await _open_beside(bank, table, Path(scratch)))
        for version, content in sorted(recorded):
            problem = await _problem(reader, table, version, content)
            found += [TableFault(table, version, problem)] if problem is not None else []
    return found


async def _open(bank: Path, table: str) -> Any:
    import lancedb

    with readable(table):
        require_openable(existing(bank, table))
        connection = await lancedb.connect_async(bank)
        return await connection.open_table(table)


async def _open_beside(bank: Path, table: str, scratch: Path) -> Any:
    """Open a mirror of the table, without its newest manifests as far as these prevent opening it."""
    path, names = bank / f"{table}.lance", manifests(bank / f"{table}.lance")
    mirror(path, scratch / path.name, [*files(path), *names])
    for name in names:
        with suppress(UnreadableError):
            return await _open(scratch, table)
        (scratch / path.name / name).unlink(missing_ok=True)
    return None


async def _problem(reader: "_Reader", table: str, version: int, content: str) -> str | None:
    try:
        with readable(table):
            reader.require(table, version)
            if await reader.step(version) == content:
                return None
            found = await reader.whole(version)
    except UnreadableError as error:
        return f"cannot be read: {error.reason}"
    return None if found == content else f"has content {found[:12]}, not the recorded {content[:12]}"


class _Reader:
    """Reader of versions in ascending order; keeps the rows of the last one."""

    def __init__(self, bank: Path, table: Any) -> None:
        self._bank = bank
        self._table = table
        self._rows: pa.Table | None = None
        self._frontier = 0

    def require(self, table: str, version: int) -> None:
        """Make sure that a version exists and that reading it will not block; raises ``OSError``."""
        path = existing(self._bank, table)
        if not (path / manifest_name(version)).exists():
            raise FileNotFoundError(f"{path / manifest_name(version)} does not exist")
        if self._table is None:
            raise FileNotFoundError(f"{path} has no version that can be opened")
        require_files(self._bank, table, version)

    async def whole(self, version: int) -> str:
        """Content hash of a version read in full."""
        await self._table.checkout(version)
        return self._keep(await self._table.query().with_row_id().to_arrow())

    async def step(self, version: int) -> str | None:
        """Content hash of a version built from the previous one and its new rows; None if the row counts differ."""
        if self._rows is None:
            return None
        await self._table.checkout(version)
        first = self._frontier << FRAGMENT
        rows = pa.concat_tables([self._rows, await self._query(range(first, first + NEW_ROWS))])
        count = await self._table.count_rows()
        if rows.num_rows > count:
            rows = rows.filter(pa.array(np.isin(fragments(rows), fragments(counting(rows)))))
        return self._keep(rows) if rows.num_rows == count else None

    def _keep(self, rows: pa.Table) -> str:
        found = content_hash(counting(rows).drop_columns([ROW]))
        self._rows = rows.combine_chunks()
        if rows.num_rows:
            self._frontier = int(fragments(rows).max()) + 1
        return found

    async def _query(self, rows: range) -> pa.Table:
        # Lance opens only the needed fragments for listed row ids, but all of them for a range of ids.
        listed = f"{ROW} IN ({', '.join(map(str, rows))})"
        return await self._table.query().where(listed).with_row_id().to_arrow()
