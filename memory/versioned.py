"""One Lance table of a bank: rows by ``id``, old versions restorable.

A row replaces those of its id in earlier fragments, so a write adds what it changes and little else (``folding``).
Nothing here cleans up: that is what would make an old version unreachable.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from configs.errors import CoevoError
from memory.canonical import content_hash
from memory.compare import changed_rows
from memory.damage import UnreadableError, readable
from memory.folding import ROW, counting, folding, within
from memory.opening import existing, open_table, open_version, require_files, require_version, set_aside


class VersionedTable:
    """A Lance table read whole and cached until it changes; this handle alone may write to it."""

    def __init__(self, bank: Path, name: str, opened: Callable[[], Any] | None = None) -> None:
        """The table is opened when it is needed first.

        Args:
            bank: directory of the tables.
            name: of the table.
            opened: opens it; at its newest version without.
        """
        self.name = name
        self._bank = bank
        self._open = opened or partial(open_table, bank, name)
        self._handle: Any = None
        self._rows: pa.Table | None = None
        self._hash: str | None = None

    @property
    def version(self) -> int:
        """Lance's version number; writes and restores make new ones."""
        return int(self._table.version)

    def rows(self) -> pa.Table:
        """All rows of this version, sorted by id. Raises ``UnreadableError`` where its files are damaged."""
        if self._rows is None:
            with readable(self.name, self.version):
                require_files(existing(self._bank, self.name), self.version)
                rows = counting(self._table.search().with_row_id(True).to_arrow()).drop_columns([ROW])
                self._hash = content_hash(rows)
            self._rows = rows
        return self._rows

    def hash(self) -> str:
        """Content hash of this version, see ``memory.canonical``."""
        if self._hash is None:
            self._hash = content_hash(self.rows())
        return self._hash

    def openable(self) -> bool:
        """Open the table; return False if it cannot be opened."""
        try:
            return self._table is not None
        except UnreadableError:
            return False

    def upsert(self, rows: pa.Table) -> None:
        """Insert or replace by id in one commit; rows that are there already make none. Of equal ids the last wins.

        Now and then a second commit drops what counts no more: with or without it, the table holds the same.
        """
        held = self.rows()
        changed = changed_rows(held, rows)
        if changed.num_rows:
            besides = folding(self._table, held, changed)
            self._table.add(pa.concat_tables([changed, besides.rows]))
            self._rows, self._hash = _merged(held, changed), None
            if besides.idle:
                self._table.delete(within(besides.idle))

    def restore(self, version: int, wanted: str) -> bool:
        """Make the content with hash ``wanted`` the latest again, from ``version``; whether that was needed.

        Raises ``CoevoError`` where the version is gone or holds something else; the table is then as it was.
        """
        if self._holds(wanted):
            return False
        if not self.openable():
            # What was recorded has to be sound before anything is moved for it.
            RecordedTable(self._bank, self.name, version, wanted).rows()
            set_aside(self._bank, self.name)
            if self._holds(wanted):
                return False
        try:
            self._checkout(version)
            require_content(self, wanted)
            self._table.restore()
        finally:
            self._table.checkout_latest()
            self._forget()
        require_content(self, wanted)
        return True

    @property
    def _table(self) -> Any:
        if self._handle is None:
            with readable(self.name):
                self._handle = self._open()
        return self._handle

    def _holds(self, wanted: str) -> bool:
        try:
            return self.hash() == wanted
        except UnreadableError:
            return False

    def _checkout(self, version: int) -> None:
        require_version(self._bank, self.name, version)
        with readable(self.name, version):
            require_files(existing(self._bank, self.name), version)
            self._table.checkout(version)
        self._forget()

    def _forget(self) -> None:
        self._rows = self._hash = None


class RecordedTable(VersionedTable):
    """One version of a table, to read only, which must hold what was recorded of it."""

    def __init__(self, bank: Path, name: str, version: int, wanted: str | None = None, where: str = "") -> None:
        """Args:
        bank: directory of the tables.
        name: of the table.
        version: Lance's number.
        wanted: content hash that was recorded; any content will do without one.
        where: prefix of what is raised, such as ``run 'first', revision 3: ``.
        """
        super().__init__(bank, name, partial(open_version, bank, name, version))
        self._version = version
        self._wanted = wanted
        self._where = where

    @property
    def version(self) -> int:
        """The version that is read."""
        return self._version

    def rows(self) -> pa.Table:
        """All rows, sorted by id.

        Raises:
            CoevoError: the version is gone, damaged, or has other content than was recorded.
        """
        if self._rows is None:
            try:
                super().rows()
                if self._wanted is not None:
                    require_content(self, self._wanted)
            except CoevoError as error:
                self._forget()
                raise CoevoError(f"{self._where}{error}") from error
        return self._rows


def require_content(table: VersionedTable, wanted: str) -> None:
    """Make sure that a table has the content with this hash.

    Raises:
        CoevoError: it has not, or cannot be read.
    """
    if table.hash() != wanted:
        raise CoevoError(
            f"bank table {table.name}: version {table.version} has content {table.hash()[:12]}, not the "
            f"recorded {wanted[:12]}: `coevo fsck` says what can be done; or choose another revision"
        )


def _merged(held: pa.Table, changed: pa.Table) -> pa.Table:
    kept = held.filter(pc.invert(pc.is_in(held["id"], value_set=changed["id"])))
    return pa.concat_tables([kept, changed]).combine_chunks().sort_by("id")
