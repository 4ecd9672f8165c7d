"""Changes of one revision to the bank, and their rows in its tables."""

from dataclasses import asdict, dataclass
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coevo.memory.bank.content_hash import content_hash
from coevo.memory.clusters import Cluster
from coevo.memory.stats import Stats
from coevo.records.arrow import ENTRIES, entries_to_table, table_to_entries
from coevo.records.entry import Entry, Verdict

STATS = pa.schema(
    [
        ("id", pa.string()),
        ("retrievals", pa.int64()),
        ("successes", pa.int64()),
        ("utility", pa.float64()),
        ("visits", pa.int64()),
    ]
)

OPTIONAL, ABSENT = ("bound", "seen_share"), -inf
"""Columns of what a verdict may lack, and the number there: tables hold no nulls, and NaN would differ from itself."""
VERDICTS = pa.schema(
    [
        ("id", pa.string()),
        ("revision", pa.int32()),
        ("candidates", pa.list_(pa.struct(list(ENTRIES)))),
        ("admitted", pa.bool_()),
        ("reward_with", pa.float64()),
        ("reward_without", pa.float64()),
        ("difference", pa.float64()),
        ("stderr", pa.float64()),
        ("pairs", pa.int32()),
        ("delta", pa.float64()),
        ("bound", pa.float64()),
        ("seen_share", pa.float64()),
    ]
)

CLUSTERS = pa.schema([("id", pa.string()), ("prototype", pa.string()), ("entries", pa.list_(pa.string()))])

OPERATIONS = pa.schema(
    [
        ("id", pa.string()),
        ("revision", pa.int32()),
        ("scope", pa.string()),
        ("line", pa.string()),
        ("outcome", pa.string()),
        ("reason", pa.string()),
        ("entries", pa.list_(pa.string())),
    ]
)

SCHEMAS = {
    "entries": ENTRIES, "stats": STATS, "verdicts": VERDICTS, "clusters": CLUSTERS, "operations": OPERATIONS,
}  # fmt: skip
"""Tables of a bank and their schemas; each has a unique column ``id``."""


LEFT_OUT = "leave-one-out/"
"""Prefix of the row id of a measurement that leaves one entry out; other rows of ``verdicts`` judge candidates."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict and the full text of its candidates, admitted or not."""

    verdict: Verdict
    candidates: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Ruling:
    """Outcome of an edit operation, recorded for audit.

    Attributes:
        id: revision and number within it, in the order of the rulings.
        revision: revision of the ruling.
        scope: key of the pool.
        line: proposed operation, shortened; empty if none was proposed.
        outcome: ``applied``, ``rejected``, ``removed`` for an entry removed by its score or by capacity, or
            ``retired`` for one that a person retired.
        reason: reason of the rejection, removal or retirement; empty if applied.
        entries: ids of the entries concerned, the remaining one first; empty if rejected.
    """

    id: str
    revision: int
    scope: str
    line: str
    outcome: str
    reason: str = ""
    entries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BankChange:
    """New content of rows; merging the same change again has no effect.

    Attributes:
        entries: new, edited and retired entries.
        stats: counters that changed, see ``coevo.memory.stats.tally``.
        judged: judged batches of candidates.
        left_out: measurements of entries, each by replays with and without it.
        clusters: new or linked observation clusters.
        operations: outcomes of edit operations.
    """

    entries: tuple[Entry, ...] = ()
    stats: tuple[Stats, ...] = ()
    judged: tuple[Judged, ...] = ()
    left_out: tuple[Judged, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    operations: tuple[Ruling, ...] = ()

    def tables(self) -> dict[str, pa.Table]:
        """Rows of each table, by its name."""
        return {
            "entries": entries_to_table(self.entries),
            "stats": pa.Table.from_pylist([asdict(row) for row in self.stats], schema=STATS),
            "verdicts": pa.Table.from_pylist(self._verdicts(), schema=VERDICTS),
            "clusters": pa.Table.from_pylist([_cluster_row(cluster) for cluster in self.clusters], schema=CLUSTERS),
            "operations": pa.Table.from_pylist([asdict(ruling) for ruling in self.operations], schema=OPERATIONS),
        }

    def _verdicts(self) -> list[dict[str, Any]]:
        judged = [_verdict_row(each) for each in self.judged]
        return judged + [row | {"id": f"{LEFT_OUT}{row['id']}"} for row in map(_verdict_row, self.left_out)]


def table_to_stats(table: pa.Table) -> dict[str, Stats]:
    """Counters by entry id."""
    return {row["id"]: Stats(**row) for row in table.to_pylist()}


def table_to_judged(table: pa.Table) -> list[Judged]:
    """Judged batches of candidates by revision, then id."""
    return [_judged(row) for row in _in_order(table) if not row["id"].startswith(LEFT_OUT)]


def table_to_left_out(table: pa.Table) -> list[Judged]:
    """Measurements that leave one entry out by revision, then id."""
    return [_judged(row) for row in _in_order(table) if row["id"].startswith(LEFT_OUT)]


def holds(column: pa.ChunkedArray, entry: str) -> pa.Array:
    """Mask of the lists that hold an id, or a row with this id."""
    lists = column.combine_chunks()
    inside = lists.flatten()
    ids = inside.field("id") if pa.types.is_struct(inside.type) else inside
    found = np.zeros(len(lists), dtype=np.bool_)
    found[lists.value_parent_indices().to_numpy()[np.asarray(pc.equal(ids, entry))]] = True
    return pa.array(found)


def table_to_clusters(table: pa.Table) -> list[Cluster]:
    """Clusters in order of creation."""
    rows = sorted(table.to_pylist(), key=lambda row: int(row["id"]))
    return [Cluster(int(row["id"]), row["prototype"], tuple(row["entries"])) for row in rows]


def table_to_rulings(table: pa.Table) -> list[Ruling]:
    """Rulings in order of creation."""
    rows = sorted(table.to_pylist(), key=lambda row: str(row["id"]))
    return [Ruling(**{**row, "entries": tuple(row["entries"])}) for row in rows]


def _cluster_row(cluster: Cluster) -> dict[str, Any]:
    return asdict(cluster) | {"id": f"{cluster.id:08d}"}


def _verdict_row(judged: Judged) -> dict[str, Any]:
    row = asdict(judged.verdict) | {"candidates": [asdict(entry) for entry in judged.candidates]}
    row |= {name: ABSENT for name in OPTIONAL if row[name] is None}
    # A revision may judge several batches, so the id of a batch is a hash of its row.
    name = content_hash(pa.Table.from_pylist([{"id": "", **row}], schema=VERDICTS))[:12]
    return {"id": name, **row}


def _in_order(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: (row["revision"], row["id"]))


def _judged(row: dict[str, Any]) -> Judged:
    candidates = tuple(table_to_entries(pa.Table.from_pylist(row["candidates"], schema=ENTRIES)))
    fields = {name: row[name] for name in VERDICTS.names if name not in ("id", "candidates", *OPTIONAL)}
    fields |= {name: row[name] for name in OPTIONAL if row.get(name, ABSENT) != ABSENT}
    return Judged(Verdict(candidates=tuple(entry.id for entry in candidates), **fields), candidates)
