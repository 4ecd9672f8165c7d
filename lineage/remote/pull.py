"""Pulling a run, onto a machine without it or onto an older copy of it.

A new run is built next to its final place and renamed. An older copy first gets additions only (objects in the cache,
versions of tables, the configuration); moving its branch is the commit point, and recovery does the rest.
"""

import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from coevo.configs.load.load import validate
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import cache_lock, runs_lock, writer_lock
from coevo.lineage.objects.content import files_of
from coevo.lineage.objects.pointer import Pointer
from coevo.lineage.remote.bank_tables import check_bank_files, check_tables, place_bank
from coevo.lineage.remote.bundle import Bundle, Record, names_in, refs_of, set_refs
from coevo.lineage.remote.compare_histories import HistoryComparison
from coevo.lineage.remote.header import MAIN
from coevo.lineage.remote.push import Transferred, remote_bundle
from coevo.lineage.remote.remote_objects import Meter, Moved, Objects
from coevo.lineage.remote.remote_store import Store
from coevo.lineage.remote.transfer_scratch import scratch_directory
from coevo.lineage.repository import Repository, own_files
from coevo.lineage.revision.versioned_store import OpenBank
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.utilities.errors import CoevoError


@dataclass(frozen=True)
class Arrival:
    """Content of a run at a remote, verified and ready to be put in place.

    Attributes:
        bundle: its history.
        record: the record that was pushed with it.
        bank: directory with all files of its bank.
        fresh: names of the files that the workspace lacks or has with other content.
        moved: size of the transfer.
    """

    bundle: Bundle
    record: Record
    bank: Path
    fresh: list[str]
    moved: Moved


class AheadError(CoevoError):
    """The run here has revisions that the remote lacks."""


def pull(name: str, workspace: Workspace, store: Store, open_bank: OpenBank, meter: Meter) -> Transferred:
    """Fetch a run from a remote; afterwards it can be resumed.

    Raises:
        AheadError: the run here is ahead.
        CoevoError: the remote has no such run, fails or has damaged files, or the run here is in use or another one.
    """
    run = workspace.run(name)
    there = run.created.is_file()
    own = scratch_directory(run.root.with_name(f".{run.name}.pull"), f"run {run.name!r} is being pulled")
    with own as scratch, writer_lock(run) if there else nullcontext():
        _, theirs = remote_bundle(store, name, scratch, own_files(run.lineage, workspace.cache))
        if theirs is None:
            raise CoevoError(f"remote {store.label}: it has no run {name!r}: push it first")
        here = Repository(run.lineage, workspace.cache).commits() if run.lineage.is_dir() else []
        comparison = HistoryComparison(here, theirs.commits)
        _check_comparison(run, theirs, store, comparison)
        with cache_lock(workspace.cache):  # fetched files belong to no run yet, and no process may collect them
            arrival = fetch(run, theirs, Objects(store, workspace.cache, meter), scratch)
            check_bank(arrival, open_bank, f"remote {store.label}: run {name!r}")
            with runs_lock(workspace.root):
                _arrive(run, workspace, arrival, comparison if there else None, open_bank)
    return Transferred(name, len(here) - 1 if here else None, len(theirs.commits) - 1, arrival.moved)


def _arrive(
    run: RunPaths, workspace: Workspace, arrival: Arrival, comparison: HistoryComparison | None, open_bank: OpenBank
) -> None:
    """Update the run of a comparison, or create the run, which another process may have done meanwhile."""
    if comparison is not None:
        _update(run, workspace, arrival, comparison, open_bank)
    else:
        workspace.check_vacant(run.name)
        _create(run, workspace, arrival, open_bank)


def _check_comparison(run: RunPaths, theirs: Bundle, store: Store, comparison: HistoryComparison) -> None:
    remedy = "name another workspace"
    if comparison.diverged:
        raise CoevoError(f"run {run.name!r} is not the one at {store.label}: {comparison.parted()}: {remedy}")
    if comparison.ahead:
        raise AheadError(
            f"run {run.name!r} has revisions up to {len(comparison.here) - 1}, {store.label} only up to "
            f"{len(comparison.there) - 1}: push it instead"
        )
    if (
        not comparison.here
        and run.created.is_file()
        and run.created.read_text(encoding="utf-8") != theirs.record().created
    ):
        raise CoevoError(f"run {run.name!r} has no revision here, and is not the one at {store.label}: {remedy}")


def _create(run: RunPaths, workspace: Workspace, arrival: Arrival, open_bank: OpenBank) -> None:
    """Build the run next to its final place, then rename it: the commit point."""
    # The same depth, since DVC finds the cache by a relative path.
    made = RunPaths(run.root.with_name(f".{run.name}.new"))
    shutil.rmtree(made.root, ignore_errors=True)
    made.root.mkdir()
    arrival.bank.rename(made.bank)
    made.write_config(validate(dict(arrival.record.config), source=f"the configuration of {run.name}"))
    made.created.write_text(arrival.record.created, encoding="utf-8")
    _advance(made, workspace, arrival.bundle, open_bank)
    workspace.trust.begin(run.name, ())  # no setting of it is confirmed, whichever run had its name before
    made.root.rename(run.root)


def _update(
    run: RunPaths, workspace: Workspace, arrival: Arrival, comparison: HistoryComparison, open_bank: OpenBank
) -> None:
    """Update an older copy."""
    place_bank(arrival.bank, arrival.fresh, run.bank)
    if comparison.behind:
        # Before the commit point: a pull that was killed here is repeated as a whole.
        run.write_config(validate(dict(arrival.record.config), source=f"the configuration of {run.name}"))
    _advance(run, workspace, arrival.bundle, open_bank)


def _advance(run: RunPaths, workspace: Workspace, bundle: Bundle, open_bank: OpenBank) -> None:
    """Move the run's branch to the last revision of the bundle: the commit point of an update."""
    repository = Repository(run.lineage, workspace.cache)
    with Lineage(repository) as lineage:
        repository.git.settle()
        # From the scratch repository: its branch reaches checked objects only.
        repository.git.fetch(bundle.root, MAIN, "--no-write-fetch-head")
        set_refs(repository.git, _new_refs(refs_of(repository.git), bundle))
        lineage.recover(open_bank(run.bank))


def _new_refs(ours: dict[str, str], bundle: Bundle) -> dict[str, str]:
    """Refs to set here: new revisions with their tags, and names that do not exist here yet."""
    commits = {f"r{n}": commit for n, commit in enumerate(bundle.commits)}
    known = {name.rpartition("/")[2] for name in ours if name.startswith(("refs/tags/r", "refs/dropped/r"))}
    kept = {
        name: to
        for name, to in bundle.refs.items()
        if name.rpartition("/")[2] in commits.keys() - known and name.startswith(("refs/tags/", "refs/dropped/"))
    }
    names = {name: to for name, to in names_in(bundle.refs).items() if name not in ours}
    return {MAIN: bundle.commits[-1], **kept, **names}


def fetch(run: RunPaths, theirs: Bundle, objects: Objects, scratch: Path) -> Arrival:
    """Fetch everything that the workspace lacks: artifacts into the cache, the bank's files into ``scratch``."""
    record = theirs.record()
    roots = theirs.contents()
    moved, lists = objects.fetch_lists({record.bank, *(root for root in roots if root.endswith(".dir"))}, scratch)
    wanted, present = lists.pop(record.bank), files_of(run.bank)
    check_bank_files(wanted, objects.label)
    for content in roots:
        objects.check_sizes(lists.get(content, {".": content}).values(), theirs.pointers[content].size)
    moved += objects.fetch({*(roots - lists.keys()), *(oid for files in lists.values() for oid in files.values())})
    for content in roots:
        _check_size(theirs.pointers[content], lists.get(content, {".": content}), objects)
    bank = scratch / "bank"
    for name in wanted:
        (bank / name).parent.mkdir(parents=True, exist_ok=True)
    fresh = [name for name, oid in wanted.items() if present.get(name) != oid]
    moved += objects.fetch_files({bank / name: wanted[name] for name in fresh})
    for name in wanted.keys() - set(fresh):
        shutil.copyfile(run.bank / name, bank / name)
    return Arrival(theirs, record, bank, fresh, moved)


def _check_size(pointer: Pointer, files: Mapping[str, str], objects: Objects) -> None:
    """Check that an artifact has the number of files and bytes in its ``.dvc`` file."""
    size = sum(objects.path(oid).stat().st_size for oid in files.values())
    count = None if "." in files else len(files)
    if (size, count) != (pointer.size, pointer.files):
        raise CoevoError(
            f"remote {objects.label}: {pointer.name}.dvc says {pointer.files} files and {pointer.size} bytes, but the "
            f"object {pointer.content} has {count} and {size}: do not use this run"
        )


def check_bank(arrival: Arrival, open_bank: OpenBank, where: str) -> None:
    """Check a fetched bank against the manifests of the run.

    Raises:
        CoevoError: its tables cannot be opened, or have other content than a manifest records.
    """
    try:
        bank = open_bank(arrival.bank)
    except CoevoError as error:
        raise CoevoError(f"{where}: {error}") from None
    check_tables(bank, arrival.bundle.whole(), where)
