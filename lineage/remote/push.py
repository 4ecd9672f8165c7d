"""Pushing a run. It takes no writer's lock, so a run can be pushed while it continues.

That is safe: everything that it reads never changes (commits, objects in the cache, versions of tables), it takes the
history at one moment, and checks everything that it sends against that. If gc drops revisions meanwhile, it begins
again without them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from coevo.lineage.git import Git
from coevo.lineage.objects.content import check, files_of, read_list, write_list
from coevo.lineage.remote.bank_tables import check_tables, copy_bank
from coevo.lineage.remote.bundle import Bundle, Record, compose, dropped_in, enter, refs_of
from coevo.lineage.remote.compare_histories import HistoryComparison
from coevo.lineage.remote.remote_objects import Meter, Moved, Objects
from coevo.lineage.remote.remote_store import Overtaken, SmallFile, Store, one_line
from coevo.lineage.remote.transfer_scratch import scratch_directory
from coevo.lineage.repository import own_files
from coevo.lineage.revision.versioned_store import OpenBank
from coevo.lineage.workspace import RunPaths
from coevo.utilities.errors import CoevoError

BUNDLE = "lineage.bundle"
MAX_ATTEMPTS = 3
"""Most attempts of a push beside gc."""


@dataclass(frozen=True)
class Transferred:
    """Result of a push or a pull.

    Attributes:
        run: name of the run.
        before: last revision of the receiving side before, None if it had no such run.
        revision: last revision of the receiving side now.
        moved: files that it lacked.
    """

    run: str
    before: int | None
    revision: int
    moved: Moved


def push(run: RunPaths, cache: Path, store: Store, open_bank: OpenBank, meter: Meter) -> Transferred:
    """Send a run to a remote; existing files are not sent again.

    Raises:
        CoevoError: the run has no revision, differs from the remote's or is behind it, is damaged, or the remote fails.
    """
    with scratch_directory(run.root / "push", f"run {run.name!r} is being pushed") as scratch:
        own = own_files(run.lineage, cache)
        held, theirs = remote_bundle(store, run.name, scratch, own)
        if not run.lineage.is_dir() or not Git(run.lineage)("for-each-ref", "refs/heads/main"):
            raise CoevoError(f"run {run.name!r} has no revision yet: push it when it has one")
        made, moved = _sent(run, Objects(store, cache, meter), theirs, own, open_bank, scratch)
        if theirs is None or theirs.refs != made.refs:
            moved += _publish(store, run.name, made, held)
    before = len(theirs.commits) - 1 if theirs else None
    return Transferred(run.name, before, len(made.commits) - 1, moved)


def _sent(
    run: RunPaths, objects: Objects, theirs: Bundle | None, own: Mapping[str, str], open_bank: OpenBank, scratch: Path
) -> tuple[Bundle, Moved]:
    """Send what the remote lacks but the bundle; from the start again if gc drops revisions meanwhile.

    Raises:
        CoevoError: as ``push``.
    """
    git = Git(run.lineage)
    for look in range(MAX_ATTEMPTS):
        made = compose(scratch / f"made-{look}", git, theirs)
        _check_comparison(run.name, objects.label, HistoryComparison(made.commits, theirs.commits if theirs else ()))
        try:
            moved = _send(run, made, objects, own, open_bank, scratch / f"content-{look}")
        except (CoevoError, OSError):
            if dropped_in(refs_of(git)) == dropped_in(made.refs):
                raise  # else gc has removed what was to be sent
        else:
            return made, moved
    raise CoevoError(f"run {run.name!r}: gc drops its revisions again and again: push it when gc has ended")


def _send(
    run: RunPaths, made: Bundle, objects: Objects, own: Mapping[str, str], open_bank: OpenBank, scratch: Path
) -> Moved:
    scratch.mkdir()
    sources = _artifacts(made, objects)
    bank, files = _bank(run, made, open_bank, scratch)
    moved = objects.send({**sources, **files})
    enter(made, _record(run, bank))
    _vet(run, made, own)
    return moved


def remote_bundle(
    store: Store, run: str, scratch: Path, own: Mapping[str, str]
) -> tuple[SmallFile | None, Bundle | None]:
    """Read a run at a remote: the file as it was read, and its history.

    Raises:
        CoevoError: the remote fails, or has a history that coevo did not write.
    """
    with one_line(store):
        held = store.read("runs", run, BUNDLE)
    if held is None:
        return None, None
    theirs = Bundle(scratch / "theirs", foreign=True)
    theirs.load(held.content, f"remote {store.label}: runs/{run}/{BUNDLE}", own)
    return held, theirs


def _check_comparison(run: str, label: str, comparison: HistoryComparison) -> None:
    if comparison.diverged:
        raise CoevoError(f"run {run!r} is not the one at {label}: {comparison.parted()}: pull it to a new workspace")
    if comparison.behind:
        raise CoevoError(
            f"run {run!r} has revisions up to {len(comparison.here) - 1}, {label} up to "
            f"{len(comparison.there) - 1}: pull it first"
        )


def _record(run: RunPaths, bank: str) -> Record:
    try:
        settings = run.read_config().model_dump(mode="json")
        return Record(created=run.created.read_text(encoding="utf-8"), config=settings, bank=bank)
    except ValidationError:
        raise CoevoError(f"{run.created} is not a time in ns: see `coevo fsck {run.name}`") from None


def _vet(run: RunPaths, made: Bundle, own: Mapping[str, str]) -> None:
    """Check that the pushed run can be pulled."""
    try:
        made.vet(own)
    except CoevoError as error:
        raise CoevoError(f"run {run.name!r} could not be pulled again: {error}: see `coevo fsck {run.name}`") from error


def _artifacts(made: Bundle, objects: Objects) -> dict[str, Path]:
    """Objects of the artifacts of every revision that is kept whole: {content hash: file}."""
    roots = made.contents()
    found = {content: objects.path(content) for content in roots}
    for content in sorted(roots):
        if content.endswith(".dir"):
            check(found[content], content)
            found |= {oid: objects.path(oid) for oid in read_list(found[content]).values()}
    return found


def _bank(run: RunPaths, made: Bundle, open_bank: OpenBank, scratch: Path) -> tuple[str, dict[str, Path]]:
    """List of the bank's files, and every object that it needs."""
    copy = scratch / "bank"
    copy_bank(run.bank, copy)
    files = files_of(copy)
    check_tables(open_bank(copy), made.whole(), str(run.bank))
    path = scratch / "bank.list"
    name = write_list(files, path)
    return name, {name: path, **{oid: copy / relative for relative, oid in files.items()}}


def _publish(store: Store, run: str, made: Bundle, held: SmallFile | None) -> Moved:
    """Publish the bundle: the commit point; from here on, the remote has the new revision."""
    content = made.content()
    try:
        with one_line(store):
            store.write(content, held, "runs", run, BUNDLE)
    except Overtaken:
        raise CoevoError(f"run {run!r} was pushed to {store.label} by another process: push it again") from None
    return Moved(1, len(content))
