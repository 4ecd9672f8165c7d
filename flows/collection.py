"""Collecting what no run keeps: which revisions go, what that frees, and doing it.

A revision is dropped by its tag, in one transaction of git; that is the commit point. Only then its versions leave the
bank and its objects the cache, which all runs share: an object goes when no revision that any run keeps needs it. A
process killed in between leaves surplus files and nothing else, and the next collection removes those as well.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from configs.errors import CoevoError
from flows.history import check
from lineage.cache import Cache
from lineage.cursor import Cursor
from lineage.files import remove
from lineage.fsck.keeping import require_collectable
from lineage.lineage import Lineage
from lineage.lock import in_use, runs_lock, writer_lock
from lineage.manifest import Manifest
from lineage.retention import Rule, Standing, reasons
from lineage.usage import disk_usage, freed_by
from lineage.workspace import RunPaths, Workspace
from memory.retention import Kept, prove, surplus


@dataclass(frozen=True)
class RunPlan:
    """What becomes of one run.

    Attributes:
        paths: the run.
        why: for each revision that is kept whole now, what keeps it; one that nothing keeps is dropped.
        history: every revision.
        bank: files of its bank that nothing kept needs.
        objects: objects of the cache that only what it drops needs.
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
        """Revisions that stay whole."""
        return [revision for revision, why in self.why.items() if why]

    @property
    def dropped(self) -> list[int]:
        """Revisions that do not."""
        return [revision for revision, why in self.why.items() if not why]

    def tables(self) -> Kept:
        """The versions that its bank keeps, by table."""
        revisions = [self.history[revision] for revision in self.kept]
        names = {name for manifest in revisions for name in manifest.tables}
        return {name: {m.versions[name]: m.tables[name] for m in revisions if name in m.tables} for name in names}

    def contents(self, revisions: Sequence[int]) -> dict[str, str]:
        """Content hashes of the artifacts of revisions, each with the name of one that has it."""
        return {
            content: f"{self.paths.name}@{revision}"
            for revision in revisions
            for content in self.history[revision].artifacts.values()
        }


@dataclass(frozen=True)
class Plan:
    """What a collection does.

    Attributes:
        runs: those that revisions are dropped of.
        objects: bytes of each object of the cache that goes; those that no revision ever named are among them.
        freed: bytes on disk that removing all of it frees.
    """

    runs: Sequence[RunPlan]
    objects: Mapping[str, int]
    freed: int


def plan(place: Workspace, names: Sequence[str], rule: Rule) -> Plan:
    """What collecting would do, nothing of it done. Safe beside writers, whose next revision may change it.

    Branch and tags of a run that a process writes to are taken as they are: they change under the eyes of a check.

    Args:
        place: the workspace.
        names: runs that revisions may be dropped of; all where there are none.
        rule: what is kept of them besides what must be.

    Raises:
        CoevoError: there is no such run, or what some run keeps cannot be found out.
    """
    require_collectable(place, [paths for paths in place.directories() if not in_use(paths)])
    return _plan(place, names, rule)


def collect(place: Workspace, names: Sequence[str], rule: Rule) -> tuple[Plan, int]:
    """Do it, under the locks of all runs; what was done, and the bytes by which the disk usage shrank.

    Raises:
        CoevoError: as ``plan``; or a run is in use, or one that is kept would not read the same afterwards.
    """
    if not (place.root / "runs").is_dir():
        return plan(place, names, rule), 0
    with ExitStack() as locks:
        locks.enter_context(runs_lock(place.root))
        for paths in place.runs():
            locks.enter_context(writer_lock(paths))
            _settle(paths, place)
        require_collectable(place, place.directories())
        before = disk_usage(place.cache, place.root / "runs")
        done = _plan(place, names, rule)
        for run in done.runs:
            if run.bank:
                prove(run.paths.bank, run.tables(), run.paths.scratch / "bank")
        _drop(place, done)
        _remove(place, done)
        return done, before - disk_usage(place.cache, place.root / "runs")


def _settle(paths: RunPaths, place: Workspace) -> None:
    """Wait for a commit that outlived its process: what it keeps may not be collected."""
    if (paths.lineage / ".git").is_dir():
        with Lineage.open(paths.lineage, place.cache) as lineage:
            lineage.settle()


def _plan(place: Workspace, names: Sequence[str], rule: Rule) -> Plan:
    chosen = {place.existing(name).name for name in names} or {paths.name for paths in place.runs()}
    plans = [_plan_run(paths, place, rule if paths.name in chosen else Rule()) for paths in place.runs()]
    cache = Cache(place.cache)
    present = cache.objects()
    kept = {content: owner for run in plans for content, owner in run.contents(run.kept).items()}
    needed = _present(kept, cache, present)
    objects = {oid: size for oid, size in present.items() if oid not in needed}
    runs = [_sized(run, cache, objects) for run in plans if run.paths.name in chosen]
    bank = sum(freed_by(path) for run in runs for path in run.bank)
    return Plan(runs, objects, bank + sum(objects.values()))


def _present(kept: Mapping[str, str], cache: Cache, present: Mapping[str, int]) -> set[str]:
    """Objects that what is kept consists of, all of which are there."""
    needed = {oid: owner for content, owner in kept.items() for oid in cache.closure({content: owner})}
    absent = sorted(needed.keys() - present.keys())
    if absent:
        raise CoevoError(
            f"{needed[absent[0]]}: object {absent[0]} is not in {cache.root}: see `coevo fsck`, which puts it back "
            "with --repair where there is another copy; nothing was removed"
        )
    return set(needed)


def _plan_run(paths: RunPaths, place: Workspace, rule: Rule) -> RunPlan:
    if not paths.lineage.is_dir():
        return RunPlan(paths, {}, [])
    with Lineage.open(paths.lineage, place.cache) as lineage:
        # First: a writer that commits and publishes meanwhile would put it ahead of the history that was read.
        published = Cursor(paths.published).check(lineage)
        history, retained, names = lineage.log(), lineage.retained(), lineage.names()
    check(history)
    return RunPlan(paths, reasons(Standing(history, retained, names, published), rule), history)


def _sized(run: RunPlan, cache: Cache, objects: Mapping[str, int]) -> RunPlan:
    bank = surplus(run.paths.bank, run.tables()) if run.history else []
    gone = run.contents(run.dropped)
    present = {content: owner for content, owner in gone.items() if content in objects}
    own = cache.closure(present) & objects.keys()
    freed = sum(freed_by(path) for path in bank) + sum(objects[oid] for oid in own)
    return replace(run, bank=bank, objects=frozenset(own), freed=freed)


def _drop(place: Workspace, done: Plan) -> None:
    for run in done.runs:
        if run.dropped:
            with Lineage.open(run.paths.lineage, place.cache) as lineage:
                lineage.drop(run.dropped)


def _remove(place: Workspace, done: Plan) -> None:
    place.clear_unfinished()
    for run in done.runs:
        for path in run.bank:
            remove(path, run.paths.bank)
    Cache(place.cache).remove(done.objects)
