"""One Lance table of a bank: rows by ``id``, old versions restorable.

A row replaces those of its id in earlier fragments, so a write adds what it changes and little else (``folding``).
Nothing here cleans up: that is what would make an old version unreachable.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from configs.errors import CoevoError
from memory.canonical import content_hash
from memory.change import SCHEMAS
from memory.compare import changed_rows
from memory.damage import UnreadableError, readable
from memory.folding import ROW, counting, folding, within


def open_table(bank: Path, name: str) -> Any:
    """A table of Lance that is there. Raises ``OSError`` where it is not; nothing is made."""
    import lancedb

    return lancedb.connect(existing(bank, name)).open_table(name)


def existing(bank: Path, name: str) -> Path:
    """The bank, if it has this table, else ``FileNotFoundError``: connecting to what is not there would make it."""
    if name not in SCHEMAS or not (bank / f"{name}.lance").is_dir():
        raise FileNotFoundError(f"{bank / name}.lance is not there")
    return bank


class VersionedTable:
    """A Lance table read whole and cached until it changes; this handle alone may write to it."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self._rows: pa.Table | None = None
        self._hash: str | None = None

    @property
    def version(self) -> int:
        """Lance's version number; writes and restores make new ones."""
        return int(self._table.version)

    def rows(self) -> pa.Table:
        """All rows of this version, sorted by id. Raises ``UnreadableError`` where its files are damaged."""
        if self._rows is None:
            with readable(self._table.name):
                self._rows = counting(self._table.search().with_row_id(True).to_arrow()).drop_columns([ROW])
        return self._rows

    def hash(self) -> str:
        """Content hash of this version, see ``memory.canonical``."""
        if self._hash is None:
            self._hash = content_hash(self.rows())
        return self._hash

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

    def checkout(self, version: int) -> None:
        """Read an old version from here on. Raises ``CoevoError`` where it is gone."""
        try:
            with readable(self._table.name):
                self._table.checkout(version)
        except UnreadableError as error:
            raise CoevoError(
                f"bank table {self._table.name}: version {version} is gone, so its revision cannot be read: "
                "copy the run's bank/ back from a backup, or choose another revision"
            ) from error
        self._forget()

    def restore(self, version: int, wanted: str) -> bool:
        """Make the content with hash ``wanted`` the latest again, from ``version``; whether that was needed.

        Raises ``CoevoError`` where the version is gone or holds something else; the table is then as it was.
        """
        if self.hash() == wanted:
            return False
        try:
            self.checkout(version)
            self._verify(wanted)
            self._table.restore()
        finally:
            self._table.checkout_latest()
            self._forget()
        self._verify(wanted)
        return True

    def _verify(self, wanted: str) -> None:
        if self.hash() != wanted:
            raise CoevoError(
                f"bank table {self._table.name}: version {self.version} has content {self.hash()[:12]}, not the "
                f"recorded {wanted[:12]}: copy the run's bank/ back from a backup, or choose another revision"
            )

    def _forget(self) -> None:
        self._rows = self._hash = None


def _merged(held: pa.Table, changed: pa.Table) -> pa.Table:
    kept = held.filter(pc.invert(pc.is_in(held["id"], value_set=changed["id"])))
    return pa.concat_tables([kept, changed]).combine_chunks().sort_by("id")
