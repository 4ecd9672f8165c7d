"""Pushing a run. It takes no writer's lock, so a run can be pushed while it goes on.

That is safe: what it reads never changes (commits, objects in the cache, versions of tables), it takes the history at
one moment, and what it sends is checked against that. Should somebody remove old revisions meanwhile, it fails, and the
remote stays what it was.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from configs.errors import CoevoError
from lineage.content import check, files_of, read_list, write_list
from lineage.git import Git
from lineage.remote.bundle import Bundle, Record, compose, enter
from lineage.remote.compare import Standing
from lineage.remote.faults import one_line
from lineage.remote.meter import Meter, Moved
from lineage.remote.objects import Objects
from lineage.remote.scratch import scratch_directory
from lineage.remote.store import Held, Overtaken, Store
from lineage.remote.tables import OpenBank, check_tables, copy_bank
from lineage.repository import own_files
from lineage.workspace import RunPaths

BUNDLE = "lineage.bundle"


@dataclass(frozen=True)
class Transferred:
    """What a push or a pull did.

    Attributes:
        run: name of the run.
        before: last revision that the receiving side had, None where it had no such run.
        revision: last revision that it has now.
        moved: files that it lacked.
    """

    run: str
    before: int | None
    revision: int
    moved: Moved


def push(run: RunPaths, cache: Path, store: Store, open_bank: OpenBank, meter: Meter) -> Transferred:
    """Bring a run to a remote; what is there already is not sent again.

    Raises:
        CoevoError: the run has no revision, differs from the remote's or is behind it, is damaged, or the remote fails.
    """
    with scratch_directory(run.root / "push", f"run {run.name!r} is being pushed") as scratch:
        own = own_files(run.lineage, cache)
        held, theirs = remote_bundle(store, run.name, scratch, own)
        git = Git(run.lineage)
        if not run.lineage.is_dir() or not git("for-each-ref", "refs/heads/main"):
            raise CoevoError(f"run {run.name!r} has no revision yet: push it when it has one")
        made = compose(scratch / "made", git, theirs)
        _check_standing(run.name, store, Standing(made.commits, theirs.commits if theirs else ()))
        objects = Objects(store, cache, meter)
        sources = _artifacts(made, objects)
        bank, files = _bank(run, made, open_bank, scratch)
        moved = objects.send({**sources, **files})
        enter(made, _record(run, bank))
        _vet(run, made, own)
        if theirs is None or theirs.refs != made.refs:
            moved += _publish(store, run.name, made, held)
    before = len(theirs.commits) - 1 if theirs else None
    return Transferred(run.name, before, len(made.commits) - 1, moved)


def remote_bundle(store: Store, run: str, scratch: Path, own: Mapping[str, str]) -> tuple[Held | None, Bundle | None]:
    """Read a run at a remote: the file as it was read, and its history.

    Raises:
        CoevoError: the remote fails, or holds a history that coevo did not write.
    """
    with one_line(store):
        held = store.read("runs", run, BUNDLE)
    if held is None:
        return None, None
    theirs = Bundle(scratch / "theirs", foreign=True)
    theirs.load(held.content, f"remote {store.label}: runs/{run}/{BUNDLE}", own)
    return held, theirs


def _check_standing(run: str, store: Store, standing: Standing) -> None:
    if standing.diverged:
        raise CoevoError(
            f"run {run!r} is not the one at {store.label}: {standing.parted()}: pull it to a new workspace"
        )
    if standing.behind:
        raise CoevoError(
            f"run {run!r} has revisions up to {len(standing.here) - 1}, {store.label} up to "
            f"{len(standing.there) - 1}: pull it first"
        )


def _record(run: RunPaths, bank: str) -> Record:
    try:
        settings = run.read_config().model_dump(mode="json")
        return Record(created=run.created.read_text(encoding="utf-8"), config=settings, bank=bank)
    except ValidationError:
        raise CoevoError(f"{run.created} is no time in ns: see `coevo fsck {run.name}`") from None


def _vet(run: RunPaths, made: Bundle, own: Mapping[str, str]) -> None:
    """See that what is pushed can be pulled."""
    try:
        made.vet(own)
    except CoevoError as error:
        raise CoevoError(f"run {run.name!r} could not be pulled again: {error}: see `coevo fsck {run.name}`") from error


def _artifacts(made: Bundle, objects: Objects) -> dict[str, Path]:
    """Objects of the artifacts of every revision that is kept whole: {content hash: file}."""
    roots = {content for manifest in made.whole() for content in manifest.artifacts.values()}
    found = {content: objects.path(content) for content in roots}
    for content in sorted(roots):
        if content.endswith(".dir"):
            check(found[content], content)
            found |= {oid: objects.path(oid) for oid in read_list(found[content]).values()}
    return found


def _bank(run: RunPaths, made: Bundle, open_bank: OpenBank, scratch: Path) -> tuple[str, dict[str, Path]]:
    """The list of the bank's files, and every object that it needs."""
    copy = scratch / "bank"
    copy_bank(run.bank, copy)
    files = files_of(copy)
    check_tables(open_bank(copy), made.whole(), str(run.bank))
    path = scratch / "bank.list"
    name = write_list(files, path)
    return name, {name: path, **{oid: copy / relative for relative, oid in files.items()}}


def _publish(store: Store, run: str, made: Bundle, held: Held | None) -> Moved:
    """The commit point: from here on, the remote has the new revision."""
    content = made.content()
    try:
        with one_line(store):
            store.write(content, held, "runs", run, BUNDLE)
    except Overtaken:
        raise CoevoError(f"run {run!r} was pushed to {store.label} by somebody else meanwhile: push it again") from None
    return Moved(1, len(content))
