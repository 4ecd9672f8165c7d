"""A bank as plain files: the parts of one version that retrieval reads, as Parquet, without LanceDB or history.

<directory>/entries.parquet   the active entries
<directory>/stats.parquet     their counters
<directory>/clusters.parquet  the observation clusters
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from coevo.memory.bank.change import SCHEMAS, BankChange, table_to_clusters, table_to_stats
from coevo.memory.clusters import Cluster
from coevo.memory.stats import Stats
from coevo.records.arrow import table_to_entries
from coevo.records.entry import Entry

TABLES = ("entries", "stats", "clusters")


class Readable(Protocol):
    """A bank, in any storage, as retrieval reads it."""

    def active(self) -> list[Entry]:
        """Entries that retrieval may return, by id."""
        ...

    def stats(self) -> dict[str, Stats]:
        """Counters by entry id."""
        ...

    def clusters(self) -> list[Cluster]:
        """The observation clusters, by id."""
        ...


@dataclass(frozen=True, slots=True)
class PlainBank:
    """The bank in a directory written by ``save``."""

    directory: Path

    def active(self) -> list[Entry]:
        """The entries, by id."""
        return table_to_entries(self._table("entries"))

    def stats(self) -> dict[str, Stats]:
        """Counters by entry id; an entry never retrieved has none."""
        return table_to_stats(self._table("stats"))

    def clusters(self) -> list[Cluster]:
        """The observation clusters, by id."""
        return table_to_clusters(self._table("clusters"))

    def _table(self, name: str) -> pa.Table:
        return pq.read_table(self.directory / f"{name}.parquet", schema=SCHEMAS[name])


def save(bank: Readable, directory: Path) -> None:
    """Write the active entries of a bank, their counters and the clusters into a new directory."""
    directory.mkdir(parents=True)
    entries, stats = bank.active(), bank.stats()
    counters = tuple(stats[entry.id] for entry in entries if entry.id in stats)
    rows = BankChange(tuple(entries), counters, clusters=tuple(bank.clusters())).tables()
    for name in TABLES:
        pq.write_table(rows[name], directory / f"{name}.parquet")
