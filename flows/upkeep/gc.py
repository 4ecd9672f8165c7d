"""Garbage collection: the revisions to drop, the space that this frees, and the removal.

Revisions are dropped by deleting their tags, in one git transaction; this is the commit point. Only then their versions
leave the bank and their objects the cache, which all runs share: an object is removed when no kept revision of any run
needs it. A process killed in between leaves only surplus files, which the next collection removes.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from coevo.flows.history.history import check
from coevo.lineage.atomic_files import remove
from coevo.lineage.fsck.refs import require_collectable
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import cache_lock, in_use, runs_lock, writer_lock
from coevo.lineage.objects.cache import Cache, disk_usage, freed_by
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.retention import RetentionRule, RunRetention, reasons
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.table_retention import KeptVersions, prove, surplus
from coevo.utilities.errors import CoevoError


@dataclass(frozen=True)
class RunPlan:
    """Effect of a collection on one run.

    Attributes:
        paths: the run.
        why: reasons to keep each revision that is complete now; without reasons it is dropped.
        history: all revisions.
        bank: files of its bank that no kept revision needs.
        objects: objects of the cache that only dropped revisions of the run need.
        freed: bytes on disk of both; an object that two runs drop counts in each.
    """

    paths: RunPaths
    why: Mapping[int, Sequence[str]]
    history: Sequence[Manifest]
    bank: Sequence[Path] = ()
    objects: frozenset[str] = frozenset()
    freed: int = 0

    @property
    def kept(self) -> list[int]:
        """Revisions that stay complete."""
        return [revision for revision, why in self.why.items() if why]

    @property
    def dropped(self) -> list[int]:
        """Revisions to drop."""
        return [revision for revision, why in self.why.items() if not why]

    def tables(self) -> KeptVersions:
        """Versions that its bank keeps, by table."""
        revisions = [self.history[revision] for revision in self.kept]
        names = {name for manifest in revisions for name in manifest.tables}
        return versions_of(revisions, names)

    def contents(self, revisions: Sequence[int]) -> dict[str, str]:
        """Content hashes of the artifacts of revisions, each with the name of a revision that has it."""
        return {
            content: f"{self.paths.name}@{revision}"
            for revision in revisions
            for content in self.history[revision].kept(self.history[-1].revision).values()
        }


def versions_of(revisions: Sequence[Manifest], names: Iterable[str]) -> KeptVersions:
    """Versions that revisions have of these tables, by table."""
    return {name: {m.versions[name]: m.tables[name] for m in revisions if name in m.tables} for name in names}


@dataclass(frozen=True)
class CollectionPlan:
    """Effect of a collection.

    Attributes:
        runs: runs in which revisions may be dropped.
        objects: size in bytes of each object to remove from the cache, including objects that no revision names.
        freed: bytes on disk that the removal frees.
    """

    runs: Sequence[RunPlan]
    objects: Mapping[str, int]
    freed: int


def plan(workspace: Workspace, names: Sequence[str], rule: RetentionRule) -> CollectionPlan:
    """Plan a collection without carrying it out. Safe beside writers, whose next revision may change the plan.

    Branch and tags of a run that a process writes to are not checked, since they may change meanwhile.

    Args:
        workspace: the workspace.
        names: runs in which revisions may be dropped; empty for all.
        rule: revisions of these runs to keep in addition to those that must stay.

    Raises:
        CoevoError: a run does not exist, or the revisions that a run keeps cannot be determined.
    """
    require_collectable(workspace, [paths for paths in workspace.directories() if not in_use(paths)])
    return _plan(workspace, names, rule)


def collect(workspace: Workspace, names: Sequence[str], rule: RetentionRule) -> tuple[CollectionPlan, int]:
    """Carry out a collection under the locks of all runs; return its plan, and the bytes by which disk usage shrank.

    Raises:
        CoevoError: as ``plan``; or a run is in use, or a kept version would read differently afterwards.
    """
    if not (workspace.root / "runs").is_dir():
        return plan(workspace, names, rule), 0
    with ExitStack() as locks:
        locks.enter_context(runs_lock(workspace.root))
        for paths in workspace.runs():
            locks.enter_context(writer_lock(paths))
            _settle(paths, workspace)
        if not locks.enter_context(cache_lock(workspace.cache, alone=True)):
            raise CoevoError(f"{workspace.root}: another process pulls or adds files: try again when it has ended")
        require_collectable(workspace, workspace.directories())
        before = disk_usage(workspace.cache, workspace.root / "runs")
        done = _plan(workspace, names, rule)
        for run in done.runs:
            if run.bank:
                prove(run.paths.bank, run.tables(), run.paths.scratch / "bank")
        _drop(workspace, done)
        _remove(workspace, done)
        return done, before - disk_usage(workspace.cache, workspace.root / "runs")


def _settle(paths: RunPaths, workspace: Workspace) -> None:
    """Wait for a commit that outlived its process, so that its objects are not collected."""
    if (paths.lineage / ".git").is_dir():
        with Lineage.open(paths.lineage, workspace.cache) as lineage:
            lineage.settle()


def _plan(workspace: Workspace, names: Sequence[str], rule: RetentionRule) -> CollectionPlan:
    chosen = {workspace.existing(name).name for name in names} or {paths.name for paths in workspace.runs()}
    plans = [
        _plan_run(paths, workspace, rule if paths.name in chosen else RetentionRule()) for paths in workspace.runs()
    ]
    cache = Cache(workspace.cache)
    present = cache.objects()
    kept = {content: owner for run in plans for content, owner in run.contents(run.kept).items()}
    needed = _present(kept, cache, present)
    objects = {oid: size for oid, size in present.items() if oid not in needed}
    runs = [_sized(run, cache, objects) for run in plans if run.paths.name in chosen]
    bank = sum(freed_by(path) for run in runs for path in run.bank)
    return CollectionPlan(runs, objects, bank + sum(objects.values()))


def _present(kept: Mapping[str, str], cache: Cache, present: Mapping[str, int]) -> set[str]:
    """Objects that kept revisions consist of; all of them must exist."""
    needed = {oid: owner for content, owner in kept.items() for oid in cache.closure({content: owner})}
    absent = sorted(needed.keys() - present.keys())
    if absent:
        raise CoevoError(
            f"{needed[absent[0]]}: object {absent[0]} is not in {cache.root}: see `coevo fsck`, which puts it back "
            "with --repair where there is another copy; nothing was removed"
        )
    return set(needed)


def _plan_run(paths: RunPaths, workspace: Workspace, rule: RetentionRule) -> RunPlan:
    if not paths.lineage.is_dir():
        return RunPlan(paths, {}, [])
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        # Read the cursor first: a concurrent writer would move it ahead of the history that is read next.
        published = Cursor(paths.published).check(lineage)
        history, retained, names = lineage.history.log(), lineage.history.retained(), lineage.history.names()
    check(history)
    return RunPlan(paths, reasons(RunRetention(history, retained, names, published), rule), history)


def _sized(run: RunPlan, cache: Cache, objects: Mapping[str, int]) -> RunPlan:
    bank = surplus(run.paths.bank, run.tables()) if run.history else []
    gone = run.contents(run.dropped)
    present = {content: owner for content, owner in gone.items() if content in objects}
    own = cache.closure(present) & objects.keys()
    freed = sum(freed_by(path) for path in bank) + sum(objects[oid] for oid in own)
    return replace(run, bank=bank, objects=frozenset(own), freed=freed)


def _drop(workspace: Workspace, done: CollectionPlan) -> None:
    for run in done.runs:
        if run.dropped:
            with Lineage.open(run.paths.lineage, workspace.cache) as lineage:
                lineage.tags.drop(run.dropped, lineage.history.commits())


def _remove(workspace: Workspace, done: CollectionPlan) -> None:
    workspace.clear_unfinished()
    for run in done.runs:
        for path in run.bank:
            remove(path, run.paths.bank)
    Cache(workspace.cache).remove(done.objects)
