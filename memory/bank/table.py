"""One Lance table of a bank: rows by ``id``, with restorable old versions.

A row replaces rows of its id in earlier fragments, so a write adds what it changes and little else (``compaction``).
This module never cleans up, which would remove old versions.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coevo.memory.bank.bank_address import BankPath
from coevo.memory.bank.compaction import FRAGMENT, ROW, compaction, counting, within
from coevo.memory.bank.content_hash import content_hash
from coevo.memory.bank.diff import changed_rows
from coevo.memory.bank.lance_errors import UnreadableError, readable
from coevo.memory.bank.opening import open_table, open_version, require_files, require_version, set_aside
from coevo.utilities.errors import CoevoError


class VersionedTable:
    """A Lance table, read in full and cached until it changes; only this handle may write to it."""

    def __init__(self, bank: BankPath, name: str, opened: Callable[[], Any] | None = None) -> None:
        """The table is opened at its first use.

        Args:
            bank: directory or address of the tables.
            name: name of the table.
            opened: function that opens the table; by default, at its newest version.
        """
        self.name = name
        self._bank = bank
        self._open = opened or partial(open_table, bank, name)
        self._handle: Any = None
        self._rows: pa.Table | None = None
        self._hash: str | None = None

    @property
    def version(self) -> int:
        """Lance's version number; writes and restores increase it."""
        return int(self._table.version)

    def rows(self) -> pa.Table:
        """All rows of this version, sorted by id. Raises ``UnreadableError`` if its files are damaged."""
        if self._rows is None:
            with readable(self.name, self.version):
                require_files(self._bank, self.name, self.version)
                rows = counting(self._table.search().with_row_id(True).to_arrow()).drop_columns([ROW])
                self._hash = content_hash(rows)
            self._rows = rows
        return self._rows

    def hash(self) -> str:
        """Content hash of this version, see ``coevo.memory.bank.content_hash``."""
        if self._hash is None:
            self._hash = content_hash(self.rows())
        return self._hash

    def open(self) -> None:
        """Open the table before its first use. Raises ``UnreadableError`` if it cannot be opened."""
        if self._handle is None:
            with readable(self.name):
                self._handle = self._open()

    def openable(self) -> bool:
        """Open the table; return False if it cannot be opened."""
        try:
            self.open()
        except UnreadableError:
            return False
        return True

    def upsert(self, rows: pa.Table) -> None:
        """Insert or replace by id in one commit, or none if no row changes. The last row of each id wins.

        Occasionally a second commit drops obsolete fragments, which does not change the content.
        """
        held = self.rows()
        changed = changed_rows(held, rows)
        if changed.num_rows:
            besides = compaction(self._table, held, changed)
            self._table.add(pa.concat_tables([changed, besides.rows]))
            self._rows, self._hash = _merged(held, changed), None
            if besides.idle:
                self._table.delete(within(besides.idle))

    def restore(self, version: int, wanted: str) -> bool:
        """Make the content with hash ``wanted`` the latest again, from ``version``; return whether this was necessary.

        Raises ``CoevoError`` if the version is missing or has other content; the table is then unchanged.
        """
        if self._holds(wanted):
            return False
        if not self.openable():
            # The recorded version must be sound before any file is moved.
            RecordedTable(self._bank, self.name, version, wanted).rows()
            set_aside(self._bank, self.name)
            if self._holds(wanted):
                return False
        try:
            self._checkout(version)
            require_content(self, wanted)
            self._table.restore()  # a manifest with the same files, so that the rows need not be read again
        except BaseException:
            self._table.checkout_latest()
            self._forget()
            raise
        return True

    @property
    def _table(self) -> Any:
        self.open()
        return self._handle

    def _holds(self, wanted: str) -> bool:
        try:
            return self.hash() == wanted
        except UnreadableError:
            return False

    def _checkout(self, version: int) -> None:
        require_version(self._bank, self.name, version)
        with readable(self.name, version):
            require_files(self._bank, self.name, version)
            self._table.checkout(version)
        self._forget()

    def _forget(self) -> None:
        self._rows = self._hash = None


class RecordedTable(VersionedTable):
    """One version of a table, read-only; reading it raises if its content differs from the record."""

    def __init__(self, bank: BankPath, name: str, version: int, wanted: str | None = None, where: str = "") -> None:
        """Args:
        bank: directory or address of the tables.
        name: name of the table.
        version: Lance's version number.
        wanted: recorded content hash; None accepts any content.
        where: prefix of error messages, such as ``run 'first', revision 3: ``.
        """
        super().__init__(bank, name, partial(open_version, bank, name, version))
        self._version = version
        self._wanted = wanted
        self._where = where

    @property
    def version(self) -> int:
        """Lance's number of this version."""
        return self._version

    def rows(self) -> pa.Table:
        """All rows, sorted by id.

        Raises:
            CoevoError: the version is missing, damaged, or has other content than recorded.
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


MAX_FOLLOWED = 1 << 17
"""Most rows of new fragments that are read by themselves."""


class FollowedTable:
    """A table read at one version after another: each time only the fragments that the version before did not have."""

    def __init__(self, bank: Path, name: str) -> None:
        """Args:
        bank: directory of the tables.
        name: name of the table.
        """
        self._bank, self._name = bank, name
        self._handle: Any = None
        self._rows: pa.Table | None = None
        self._fragments: Mapping[int, int] = {}

    def rows(self, version: int, wanted: str) -> pa.Table:
        """All rows of a version, sorted by id, with this content hash.

        Raises:
            CoevoError: the version is missing, damaged, or has other content.
        """
        with readable(self._name, version):
            files = require_files(self._bank, self._name, version)
        rows = None if files is None else self._followed(version, files.fragments)
        if rows is None or content_hash(rows) != wanted:
            rows = RecordedTable(self._bank, self._name, version, wanted).rows()
        self._rows, self._fragments = rows, {} if files is None else files.fragments
        return rows

    def _followed(self, version: int, fragments: Mapping[int, int]) -> pa.Table | None:
        """Rows of a version if those of before are part of it, and are not simply all."""
        if self._rows is None:
            return None
        new = sorted(fragments.keys() - self._fragments.keys())
        # The manifest may come from elsewhere; what is beyond these bounds is read by Lance, which looks at the files.
        if sum(fragments[number] for number in new) > MAX_FOLLOWED or any(number >= 1 << FRAGMENT for number in new):
            return None
        places = [(number << FRAGMENT) + row for number in new for row in range(fragments[number])]
        if not places:
            return self._rows
        try:
            with readable(self._name, version):
                if self._handle is None:  # its truth would count its rows
                    self._handle = open_table(self._bank, self._name)
                self._handle.checkout(version)
                asked = self._handle.take_row_ids(places)
                # A write has each id once.
                found = asked.to_arrow() if len(new) == 1 else counting(asked.with_row_id().to_arrow())
        except UnreadableError:
            self._handle = None
            return None
        return _merged(self._rows, found.select(self._rows.column_names))


def require_content(table: VersionedTable, wanted: str) -> None:
    """Make sure that a table has the content with this hash.

    Raises:
        CoevoError: the content differs or cannot be read.
    """
    if table.hash() != wanted:
        raise CoevoError(
            f"bank table {table.name}: version {table.version} has content {table.hash()[:12]}, not the "
            f"recorded {wanted[:12]}: `coevo fsck` lists remedies; or choose another revision"
        )


def _merged(held: pa.Table, changed: pa.Table) -> pa.Table:
    kept = held.filter(pc.invert(pc.is_in(held["id"], value_set=changed["id"])))
    return pa.concat_tables([kept, changed]).combine_chunks().sort_by("id")
