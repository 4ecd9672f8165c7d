"""The bank of one run on LanceDB: the store of record. Rollouts read an in-memory index of one version instead."""

from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from memory.change import (
    SCHEMAS,
    BankChange,
    Judged,
    Ruling,
    table_to_clusters,
    table_to_judged,
    table_to_rulings,
    table_to_stats,
)
from memory.clusters import Cluster
from memory.damage import readable
from memory.opening import existing, require_openable, require_version
from memory.stats import Stats
from memory.versioned import RecordedTable, VersionedTable
from records.arrow import table_to_entries
from records.entry import Entry


class BankView:
    """A bank to read: the latest version, or an old one (``Bank.at``)."""

    def __init__(self, tables: Mapping[str, VersionedTable]) -> None:
        self._tables = tables

    def entries(self) -> list[Entry]:
        """Every entry that was ever admitted, retired ones included, by id."""
        return table_to_entries(self._tables["entries"].rows())

    def size(self) -> int:
        """How many entries are active."""
        return int(np.count_nonzero(self.rows()["retired"].to_numpy() < 0))

    def active(self) -> list[Entry]:
        """The entries that retrieval may return, by id."""
        rows = self.rows()
        return table_to_entries(rows.filter(pc.less(rows["retired"], 0)))

    def rows(self) -> pa.Table:
        """The same as ``entries`` in a table of ``records.arrow.ENTRIES``, for what need not make an object of each."""
        return self._tables["entries"].rows()

    def stats(self) -> dict[str, Stats]:
        """Counters by entry id; an entry that was never retrieved has none."""
        return table_to_stats(self._tables["stats"].rows())

    def stats_of(self, entries: Collection[str]) -> dict[str, Stats]:
        """Counters of these entries, as far as they have any."""
        rows = self._tables["stats"].rows()
        return table_to_stats(rows.filter(pc.is_in(rows["id"], value_set=pa.array(entries, pa.string()))))

    def judged(self) -> list[Judged]:
        """Every batch of candidates that was judged, admitted or not, by revision."""
        return table_to_judged(self._tables["verdicts"].rows())

    def clusters(self) -> list[Cluster]:
        """The observation clusters, by id."""
        return table_to_clusters(self._tables["clusters"].rows())

    def operations(self) -> list[Ruling]:
        """What became of every edit operation, oldest first."""
        return table_to_rulings(self._tables["operations"].rows())

    def versions(self) -> dict[str, int]:
        """Lance version of each table."""
        return {name: table.version for name, table in self._tables.items()}

    def hashes(self) -> dict[str, str]:
        """Content hash of each table; versions count writes, hashes compare content."""
        return {name: table.hash() for name, table in self._tables.items()}


class StoredBank(BankView):
    """The bank under ``path``, to read. Nothing is made: a table that is gone is named, and stays for fsck to find.

    A damaged table is named when it is read first, so that the others can be read.

    Raises:
        UnreadableError: a table is gone.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__({name: VersionedTable(path, name) for name in SCHEMAS})
        self._require_tables()

    def at(self, versions: Mapping[str, int], hashes: Mapping[str, str] | None = None, where: str = "") -> BankView:
        """The bank as it was, to read only.

        Args:
            versions: Lance version of each table.
            hashes: content hash that was recorded of each table: reading any other content raises.
            where: prefix of what is raised, such as ``run 'first', revision 3: ``.

        Raises:
            CoevoError: a version is gone; names table and version. Reading the view raises where it is damaged.
        """
        self._require_tables()
        for name in SCHEMAS:
            require_version(self._path, name, versions[name])
        recorded = hashes or {}
        tables = {n: RecordedTable(self._path, n, versions[n], recorded.get(n), where) for n in SCHEMAS}
        return BankView(tables)

    def _require_tables(self) -> None:
        for name in SCHEMAS:
            with readable(name):
                existing(self._path, name)


class Bank(StoredBank):
    """The live bank under ``path``, made where there is none. One process at a time may write to it."""

    def __init__(self, path: Path) -> None:
        import lancedb

        connection = lancedb.connect(path)
        self._path = path
        tables = {name: VersionedTable(path, name, partial(_made, connection, path, name)) for name in SCHEMAS}
        for table in tables.values():
            # What cannot be opened is named when it is needed, so that ``restore`` can bring it back.
            table.openable()
        BankView.__init__(self, tables)

    def merge(self, change: BankChange) -> None:
        """Write a change, one commit for each table that it alters and none for the others.

        A table's commit is all or nothing; a kill between two of them is mended by ``restore``.
        """
        for name, rows in change.tables().items():
            if rows.num_rows:
                self._tables[name].upsert(rows)

    def restore(self, versions: Mapping[str, int], hashes: Mapping[str, str]) -> list[str]:
        """Bring back the recorded content of every table that differs from it; the names of those that did.

        Raises ``CoevoError`` naming a table whose recorded version is gone or holds other content.
        """
        return [name for name, table in self._tables.items() if table.restore(versions[name], hashes[name])]


def _made(connection: Any, bank: Path, name: str) -> Any:
    """A table of a connection, made where there is none."""
    if (bank / f"{name}.lance").is_dir():
        require_openable(bank / f"{name}.lance")
    return connection.create_table(name, schema=SCHEMAS[name], exist_ok=True)
