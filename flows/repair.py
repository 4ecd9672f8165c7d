"""``coevo fsck --repair``: what can be mended is, in an order in which nothing that is still right gets lost.

Copies first, then what is thrown away. A step that cannot be done leaves its finding for the check that follows.
"""

from collections.abc import Sequence
from contextlib import suppress

from configs.errors import CoevoError
from flows.fsck import Check, Examined, Note
from lineage.fsck.artifacts import mend_artifacts
from lineage.fsck.empty_refs import mend_empty_refs
from lineage.fsck.history import Revision, damaged_objects, read_history
from lineage.fsck.line import read_line
from lineage.fsck.mend import clear_checkout, clear_leftovers, mend_branch, mend_git, unlock
from lineage.fsck.places import tidy
from lineage.lineage import Lineage
from lineage.lock import writer_lock
from lineage.remote.banks import RemoteBanks
from lineage.repository import Repository
from lineage.workspace import RunPaths, Workspace


def repair(place: Workspace, found: Examined, note: Note, banks: RemoteBanks | None = None) -> None:
    """Mend what was found; a run that a process writes to is left alone.

    Args:
        place: the workspace.
        found: by ``examine``.
        note: told what is under way.
        banks: of a remote, which may have copies of what is damaged.
    """
    check = Check(place, note, banks)
    if found.elsewhere:
        tidy(place)
    for checked in found.runs:
        if checked.findings and not checked.in_use:
            note(f"{checked.run}: repair")
            repair_run(check, place.run(checked.run))


def repair_run(check: Check, paths: RunPaths) -> None:
    """Mend one run, holding its lock.

    Raises:
        CoevoError: another process holds it.
    """
    with writer_lock(paths):
        clear_leftovers(paths)
        if not (paths.lineage / ".git").is_dir():
            return
        repository = Repository(paths.lineage, check.place.cache)
        unlock(repository)
        mend_empty_refs(repository)
        mend_git(repository, check.siblings(paths))
        if damaged_objects(repository):
            return
        mend_branch(repository)
        line = read_line(repository)
        revisions, unreadable = read_history(repository, line.commits, paths.name)
        if unreadable:
            return
        _mend_stores(check, paths, repository, revisions, line.dropped())


def _mend_stores(
    check: Check, paths: RunPaths, repository: Repository, revisions: Sequence[Revision], gone: set[int]
) -> None:
    from tasks.check_published import check_published
    from tasks.republish import republish
    from tasks.tracking.store import tracking_store

    kept = [one for one in revisions if one.number not in gone]
    mend_artifacts(check.objects, check.donors, kept)
    check.bank(paths, kept).mend(paths.scratch / ".bank")
    if revisions:
        clear_checkout(repository, check.objects, revisions[-1].manifest.artifacts)
        _mend_config(paths, revisions[-1])
    _recover(check, paths, repository)
    store = tracking_store(check.place.root)
    if any(finding.mendable for finding in check_published(store, paths, revisions)):
        with suppress(CoevoError):
            check.place.trust.demand(paths.name, paths.read_config())
            republish(store, paths, revisions, gone)


def _recover(check: Check, paths: RunPaths, repository: Repository) -> None:
    from memory.store import Bank

    with suppress(CoevoError), Lineage.open(paths.lineage, check.place.cache) as lineage:
        lineage.recover(Bank(paths.bank))
    # Recovery stops at the first store that is beyond it.
    repository.retag()


def _mend_config(paths: RunPaths, head: Revision) -> None:
    from configs.load import validate

    try:
        paths.read_config()
    except (CoevoError, OSError, UnicodeDecodeError):
        paths.write_config(validate(dict(head.manifest.state["config"]), source=f"{paths.name}@{head.number}"))
