"""The bank of one run on LanceDB: the store of record. Rollouts read an in-memory index of one version.

``why`` is the provenance of an entry: its sources, replays and edit operations, and its use since.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coevo.memory.bank.bank_address import BankPath, bank_path, connect
from coevo.memory.bank.change import (
    SCHEMAS,
    BankChange,
    Judged,
    Ruling,
    holds,
    table_to_clusters,
    table_to_judged,
    table_to_left_out,
    table_to_rulings,
    table_to_stats,
)
from coevo.memory.bank.lance_errors import UnreadableError, readable
from coevo.memory.bank.opening import existing, require_openable, require_version
from coevo.memory.bank.table import RecordedTable, VersionedTable
from coevo.memory.clusters import Cluster
from coevo.memory.stats import Stats
from coevo.records.arrow import table_to_entries
from coevo.records.entry import Entry
from coevo.utilities.errors import CoevoError


class BankView:
    """Read-only bank: the latest version, or an old one (``Bank.at``)."""

    def __init__(self, tables: Mapping[str, VersionedTable]) -> None:
        self._tables = tables

    def entries(self) -> list[Entry]:
        """All entries ever admitted, retired ones included, by id."""
        return table_to_entries(self._tables["entries"].rows())

    def size(self) -> int:
        """Number of active entries."""
        return int(np.count_nonzero(self.rows()["retired"].to_numpy() < 0))

    def active(self) -> list[Entry]:
        """Entries that retrieval may return, by id."""
        rows = self.rows()
        return table_to_entries(rows.filter(pc.less(rows["retired"], 0)))

    def rows(self) -> pa.Table:
        """``entries`` as a table of ``coevo.records.arrow.ENTRIES``, without an object per entry."""
        return self._tables["entries"].rows()

    def stats(self) -> dict[str, Stats]:
        """Counters by entry id; an entry that was never retrieved has none."""
        return table_to_stats(self._tables["stats"].rows())

    def judged(self, entry: str | None = None, revision: int | None = None) -> list[Judged]:
        """All judged batches of candidates, admitted or not, by revision; or those with an entry, or of a revision."""
        return table_to_judged(self._verdicts(entry, revision))

    def left_out(self, entry: str | None = None) -> list[Judged]:
        """Measurements of entries, or of one, with and without them, by revision; ``admitted``: the entry stayed."""
        return table_to_left_out(self._verdicts(entry, None))

    def operations(self, entry: str | None = None, revision: int | None = None) -> list[Ruling]:
        """Outcomes of all edit operations, oldest first; or those about an entry, or of a revision."""
        return table_to_rulings(_chosen(self._tables["operations"].rows(), "entries", entry, revision))

    def _verdicts(self, entry: str | None, revision: int | None) -> pa.Table:
        return _chosen(self._tables["verdicts"].rows(), "candidates", entry, revision)

    def clusters(self) -> list[Cluster]:
        """The observation clusters, by id."""
        return table_to_clusters(self._tables["clusters"].rows())

    def versions(self) -> dict[str, int]:
        """Lance version of each table."""
        return {name: table.version for name, table in self._tables.items()}

    def hashes(self) -> dict[str, str]:
        """Content hash of each table; versions count writes, hashes compare content."""
        return {name: table.hash() for name, table in self._tables.items()}


class StoredBank(BankView):
    """The bank under ``path``, a directory or ``s3://BUCKET/PREFIX``, read-only.

    Missing tables are reported, not created, so that fsck can find them. A damaged table raises at its first read, so
    that the others can be read.

    Raises:
        UnreadableError: a table is missing.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = bank_path(path)
        super().__init__({name: VersionedTable(self._path, name) for name in SCHEMAS})
        self._require_tables()

    def at(self, versions: Mapping[str, int], hashes: Mapping[str, str] | None = None, where: str = "") -> BankView:
        """The bank at earlier versions, read-only.

        Args:
            versions: Lance version of each table.
            hashes: recorded content hash of each table; reading any other content raises.
            where: prefix of error messages, such as ``run 'first', revision 3: ``.

        Raises:
            CoevoError: a version is missing; names table and version. Reading damaged tables raises, too.
        """
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
    """The live bank under ``path``, as there, created if missing. At most one process may write to it."""

    def __init__(self, path: Path | str) -> None:
        self._path = bank_path(path)
        opening = partial(_made, connect(self._path), self._path)
        tables = {name: VersionedTable(self._path, name, partial(opening, name)) for name in SCHEMAS}
        for table in tables.values():
            # A damaged table raises when it is needed, so that ``restore`` can bring it back.
            with suppress(UnreadableError):
                table.open()  # creates a missing one
        BankView.__init__(self, tables)

    def merge(self, change: BankChange) -> None:
        """Write a change, with one commit per changed table.

        A table's commit is atomic; ``restore`` repairs a bank after a kill between two commits.
        """
        for name, rows in change.tables().items():
            if rows.num_rows:
                self._tables[name].upsert(rows)

    def restore(self, versions: Mapping[str, int], hashes: Mapping[str, str]) -> list[str]:
        """Restore the recorded content of every table that differs from it; return the names of these tables.

        Raises ``CoevoError`` naming a table whose recorded version is missing or has other content.
        """
        return [name for name, table in self._tables.items() if table.restore(versions[name], hashes[name])]


def _made(connection: Any, bank: BankPath, name: str) -> Any:
    """Open a table of a connection, created if missing."""
    if (bank / f"{name}.lance").is_dir():
        require_openable(bank / f"{name}.lance")
    return connection.create_table(name, schema=SCHEMAS[name], exist_ok=True)


@dataclass(frozen=True, slots=True)
class Retrieval:
    """An episode with the entry in a prompt, and its outcome."""

    episode: str
    task: str
    revision: int
    success: bool


@dataclass(frozen=True, slots=True)
class Provenance:
    """The history of one entry.

    Attributes:
        entry: current content; if never admitted, the proposed content.
        admitted: whether it ever entered the bank.
        judged: batches in which it was judged, by revision.
        left_out: measurements of it by replays with and without it, by revision.
        operations: rulings about it, oldest first.
        stats: its counters.
        retrievals: episodes that retrieved it, in the order of the given rows.
    """

    entry: Entry
    admitted: bool
    judged: tuple[Judged, ...]
    left_out: tuple[Judged, ...]
    operations: tuple[Ruling, ...]
    stats: Stats
    retrievals: tuple[Retrieval, ...]


def why(bank: BankView, entry: str, episodes: Iterable[Mapping[str, Any]] = ()) -> Provenance:
    """Provenance of the entry with this id; ``episodes`` are rows of ``coevo.records.arrow.EPISODES``.

    Only ``id``, ``task_id``, ``revision``, ``success`` and ``turns[].retrieved`` of a row are read. Raises
    ``CoevoError`` for an id that the bank has neither admitted nor judged.
    """
    judged = tuple(bank.judged(entry))
    kept = next((held for held in bank.entries() if held.id == entry), None)
    known = kept or next((each for batch in judged for each in batch.candidates if each.id == entry), None)
    if known is None:
        raise CoevoError(f"entry {entry!r} is not in this bank: `coevo bank show` lists the ids that are")
    return Provenance(
        entry=known,
        admitted=kept is not None,
        judged=judged,
        left_out=tuple(bank.left_out(entry)),
        operations=tuple(bank.operations(entry)),
        stats=bank.stats().get(entry, Stats(entry)),
        retrievals=tuple(_retrieval(row) for row in episodes if _shown(row, entry)),
    )


def _shown(row: Mapping[str, Any], entry: str) -> bool:
    return any(entry in turn["retrieved"] for turn in row["turns"])


def _retrieval(row: Mapping[str, Any]) -> Retrieval:
    return Retrieval(row["id"], row["task_id"], row["revision"], row["success"])


def _chosen(rows: pa.Table, column: str, entry: str | None, revision: int | None) -> pa.Table:
    """Rows with an entry in a column of lists, and of a revision, without an object per other row."""
    if entry is not None:
        rows = rows.filter(holds(rows[column], entry))
    return rows if revision is None else rows.filter(pc.equal(rows["revision"], revision))
