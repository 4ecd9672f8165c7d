"""Checks against a run's manifests: of the bank, and of MLflow with its repair.

Of the bank: every table version of a kept revision, and the latest against the head. Of MLflow: name, points of each
published revision, and tags.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from coevo.envs.registry import make
from coevo.lineage.findings import Finding, lost, mendable
from coevo.lineage.fsck.history_check import Revision
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.remote.banks import RemoteBanks
from coevo.lineage.revision.retention import ranges
from coevo.lineage.status import read_record
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.repair_tables import Donor, find_mend, related
from coevo.memory.bank.repair_tables import place as put
from coevo.memory.bank.table_check import TableFault, faults, stale
from coevo.tasks.publish.catchup import entries_at, finish
from coevo.tasks.publish.mlflow.publication import Publication, points
from coevo.tasks.publish.mlflow.run_names import is_right, other_names
from coevo.tasks.publish.mlflow.tracker import Tracker
from coevo.tasks.publish.mlflow.tracking_store import TrackingError, TrackingStore, client, database_of, translated
from coevo.tasks.publish.reporter import Silent
from coevo.utilities.errors import CoevoError

ELSEWHERE = "`coevo fsck --repair --from REMOTE` if it was pushed, a backup of the run's bank/"


class BankCheck:
    """Check of one run's bank against its kept revisions."""

    def __init__(self, bank: Path, kept: Sequence[Revision], run: str, donors: Sequence[Donor]) -> None:
        """Args:
        bank: directory of the tables.
        kept: kept revisions.
        run: name of the run.
        donors: other banks that may have copies of damaged files.
        """
        self._bank = bank
        self._run = run
        self._donors = donors
        self._kept = kept
        self._users: dict[tuple[str, int], list[int]] = defaultdict(list)
        self._recorded: dict[str, set[tuple[int, str]]] = defaultdict(set)
        for revision in kept:
            manifest = revision.manifest
            for table, content in manifest.tables.items():
                self._users[table, manifest.versions[table]].append(revision.number)
                self._recorded[table].add((manifest.versions[table], content))

    @classmethod
    def of(cls, workspace: Workspace, paths: RunPaths, kept: Sequence[Revision], remote: RemoteBanks | None) -> Self:
        """Check of a run's bank, with the banks of other runs and of a remote as donors."""
        others = [other.bank for other in workspace.directories() if other.name != paths.name]
        donors: list[Donor] = [] if remote is None else [remote.of(paths.name)]
        return cls(paths.bank, kept, paths.name, [*related(paths.bank, others), *donors])

    def versions(self) -> list[Finding]:
        """Findings, one per needed table version that cannot be read or has other content."""
        found = faults(self._bank, self._recorded)
        mended = {name: self._mended(name) for name in sorted({fault.table for fault in found})}
        broken = {(name, version) for name in mended for version in self._broken(found, name)}
        left = {(name, version) for name, version in broken if version not in mended[name]}
        return [self._finding(fault, left) for fault in found]

    def mend(self, scratch: Path) -> None:
        """Repair tables from other banks; tables that cannot be repaired are left for the check that follows."""
        for table in sorted({fault.table for fault in faults(self._bank, self._recorded)}):
            with suppress(CoevoError):
                found = find_mend(self._bank, table, self._recorded[table], self._donors)
                put(self._bank, found, self._recorded[table], scratch)

    def _broken(self, found: Sequence[TableFault], table: str) -> set[int]:
        """Versions of a table that differ from their record; all of them if the table is missing."""
        if not (self._bank / f"{table}.lance").is_dir():
            return {version for version, _ in self._recorded[table]}
        return {fault.version for fault in found if fault.table == table and fault.version is not None}

    def _mended(self, table: str) -> frozenset[int]:
        return find_mend(self._bank, table, self._recorded[table], self._donors).versions

    def _finding(self, fault: TableFault, left: set[tuple[str, int]]) -> Finding:
        """Finding for a fault; ``left``: table versions that cannot be repaired."""
        if fault.version is None:
            last = (fault.table, self._kept[-1].manifest.versions[fault.table])
            return self._judged(self._run, f"{_named(fault.table)} {fault.problem}", last in left, left)
        numbers = self._users[fault.table, fault.version]
        needed = ", ".join(map(str, numbers))
        what = f"{_named(fault.table, fault.version)} of revision {needed} {fault.problem}"
        return self._judged(f"{self._run}@{numbers[0]}", what, (fault.table, fault.version) in left, left)

    def _judged(self, subject: str, what: str, beyond: bool, left: set[tuple[str, int]]) -> Finding:
        if not beyond:
            return mendable(subject, what, "takes it from a copy that is still right")
        return lost(subject, what, f"no other copy is here: {ELSEWHERE}; {self._remaining(left)}")

    def _remaining(self, left: set[tuple[str, int]]) -> str:
        """Commands that still work with the rest of the bank."""
        gone = {number for needed in left for number in self._users[needed]}
        whole = [revision.number for revision in self._kept if revision.number not in gone]
        if not whole:
            return "the bank of no revision is whole"
        said = f"the bank of revision {ranges(whole)} is whole"
        if whole[-1] == self._kept[-1].number:
            return f"{said}, so `coevo resume {self._run}` continues"
        return f"{said}: `coevo rollback {self._run} --to {whole[-1]}`"


def check_latest(bank: Path, head: Revision, versions: Sequence[Finding], run: str) -> Iterator[Finding]:
    """Findings for tables whose latest content differs from the head's; ``versions``: findings of ``BankCheck``."""
    for fault in stale(bank, head.manifest.tables):
        version = head.manifest.versions[fault.table]
        broken = (_named(fault.table), _named(fault.table, version))
        if not any(finding.problem.startswith(broken) for finding in versions):
            yield mendable(f"{run}@{head.number}", f"{_named(fault.table)} {fault.problem}", "restores the table")


def _named(table: str, version: int | None = None) -> str:
    return f"bank table {table} " + ("(latest)" if version is None else f"version {version}")


MetricPoint = tuple[float, int]
"""Value and timestamp."""
PAGE = 1000


@dataclass(frozen=True)
class Published:
    """Content of MLflow for one run.

    Attributes:
        ids: ids of the MLflow runs of this run: exactly one unless something is wrong.
        tags: tags of the first of them.
        points: points by step and current metric name.
        name: name of the first of them.
        taken: names of other MLflow runs in its experiment that begin with the run's name.
    """

    ids: tuple[str, ...]
    tags: Mapping[str, str]
    points: Mapping[int, Mapping[str, Sequence[MetricPoint]]]
    name: str = ""
    taken: Set[str] = frozenset()


def check_published(store: TrackingStore, paths: RunPaths, revisions: Sequence[Revision]) -> Iterator[Finding]:
    """Check that the cursor is not ahead and that MLflow has all up to it; skipped for runs never published."""
    run, head = paths.name, len(revisions) - 1
    last = cursor_of(paths)
    if last is None:
        yield mendable(run, "published.json is damaged", "publishes the run again, which repeats nothing")
        return
    if last > head:
        held = f"its last is {head}" if revisions else "it has none"
        yield mendable(run, f"published.json says revision {last}, but {held}", "puts it back and publishes the rest")
    if not 0 <= last <= head:
        return
    try:
        published = read_published(store, paths)
    except TrackingError as error:
        yield lost(run, f"published data was not checked: {error}", "start that server, or set MLFLOW_TRACKING_URI")
        return
    yield from _compare(store, published, revisions, last, run)


def cursor_of(paths: RunPaths) -> int | None:
    """The last published revision, -1 before the first; None if the file is damaged."""
    try:
        return Cursor(paths.published).read()
    except CoevoError:
        return None


def gaps(published: Published, revisions: Sequence[Revision]) -> dict[int, list[str]]:
    """Names of the metrics that MLflow lacks, by revision; complete revisions are omitted."""
    missing = {r.number: [n for n in points(r.manifest) if n not in published.points.get(r.number, {})]
               for r in revisions}  # fmt: skip
    return {number: names for number, names in missing.items() if names}


def read_published(store: TrackingStore, paths: RunPaths) -> Published:
    """Read the run from MLflow; nothing is created there.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    database = database_of(store)
    if database is not None and not database.is_file():
        return Published((), {}, {})
    with translated(store, "cannot be read"):
        mlflow = client(store)
        found = _runs(mlflow, paths)
        if not found:
            return Published((), {}, {})
        ids, first = tuple(run.info.run_id for run in found), found[0].info
        taken = other_names(mlflow, first.experiment_id, paths.name, first.run_id)
        return Published(ids, dict(found[0].data.tags), _points(mlflow, found[0]), first.run_name, taken)


def _runs(mlflow: Any, paths: RunPaths) -> Sequence[Any]:
    origin = paths.created.read_text(encoding="utf-8").strip()
    query = f"tags.`coevo.run` = '{paths.name}' and tags.`coevo.origin` = '{origin}'"
    experiments = [experiment.experiment_id for experiment in mlflow.search_experiments()]
    return list(mlflow.search_runs(experiments, query, max_results=PAGE))


def _points(mlflow: Any, run: Any) -> Mapping[int, Mapping[str, Sequence[MetricPoint]]]:
    points: dict[int, dict[str, list[MetricPoint]]] = defaultdict(lambda: defaultdict(list))
    for name in run.data.metrics:
        for metric in mlflow.get_metric_history(run.info.run_id, name):
            points[metric.step][name].append((metric.value, metric.timestamp))
    return points


def _compare(
    store: TrackingStore, published: Published, revisions: Sequence[Revision], last: int, run: str
) -> Iterator[Finding]:
    if not published.ids:
        how = "publishes it there; where it was published elsewhere, set MLFLOW_TRACKING_URI first"
        yield mendable(run, f"revisions up to {last} are published, but {store.uri} does not know the run", how)
        return
    anew = f"points cannot be taken back: delete the MLflow run {published.ids[0]}, then `coevo fsck --repair {run}`"
    if len(published.ids) > 1:
        yield lost(run, f"MLflow has {len(published.ids)} runs for it", "delete all but one of them in MLflow")
    elif not is_right(published.name, run, published.taken):
        yield mendable(run, f"MLflow shows it as {published.name!r}", "gives the MLflow run the run's name")
    for number, names in gaps(published, revisions[: last + 1]).items():
        yield mendable(f"{run}@{number}", f"MLflow lacks {_some(names)}", "publishes the revision again")
    for revision in revisions:
        names = _wrong(published, revision)
        if names:
            yield lost(f"{run}@{revision.number}", f"MLflow has other points than the manifest: {_some(names)}", anew)
    beyond = sorted(step for step in published.points if step >= len(revisions))
    if beyond:
        pulled = f"`coevo pull REMOTE {run}` if another machine continued the run; otherwise {anew}"
        yield lost(run, f"MLflow has points of revision {beyond[0]}, but the last is {len(revisions) - 1}", pulled)
    else:
        yield from _check_tags(published, revisions, last, run)


def _check_tags(published: Published, revisions: Sequence[Revision], last: int, run: str) -> Iterator[Finding]:
    said = published.tags.get("coevo.revision", "")
    number = int(said) if said.isdecimal() else -1
    # MLflow has a revision before the cursor does.
    if not last <= number < len(revisions):
        yield mendable(run, f"the tag coevo.revision is {said or 'absent'} in MLflow, not {last}", "writes it again")
    elif published.tags.get("coevo.commit") != revisions[number].commit:
        yield mendable(f"{run}@{number}", "the tag coevo.commit in MLflow names another commit", "writes it again")


def _wrong(published: Published, revision: Revision) -> list[str]:
    expected, timestamp = points(revision.manifest), revision.manifest.observed["timestamp"]
    found = published.points.get(revision.number, {})
    return [name for name, values in found.items() if list(values) != [(expected.get(name), timestamp)]]


def _some(names: Sequence[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def republish(store: TrackingStore, paths: RunPaths, revisions: Sequence[Revision], dropped: set[int]) -> None:
    """Correct the cursor, and publish all revisions up to it that MLflow lacks; the last one sets the tags.

    The cursor is never ahead of MLflow: after a kill at any point, the rest is published later.

    Args:
        store: MLflow's store.
        paths: paths of the run, whose lock the caller holds.
        revisions: the whole history.
        dropped: revisions whose bank is not kept.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    head, said = len(revisions) - 1, cursor_of(paths)
    last = head if said is None else min(said, head)
    cursor = Cursor(paths.published)
    if last < 0:
        cursor.advance(last)
        return
    lacking = gaps(read_published(store, paths), revisions[: last + 1])
    wanted = sorted({*lacking, last})
    cursor.advance(wanted[0] - 1)
    origin = paths.created.read_text(encoding="utf-8").strip()
    tracker = Tracker(store, make(paths.read_config().env).name, paths.name, origin)
    bank = Bank(paths.bank)
    for number in wanted:
        revision = revisions[number]
        entries = None if number in dropped else entries_at(bank, revision.manifest, Silent())
        tracker.publish(Publication(revision.manifest, revision.commit, entries))
        cursor.advance(number)
    tracker.rename()
    finish(tracker, paths, [revision.manifest for revision in revisions], read_record(paths))
    cursor.close()
