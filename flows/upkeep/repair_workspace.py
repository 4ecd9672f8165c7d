"""``coevo fsck --repair``: repairs in an order in which no intact data is lost.

Copies come first, removals afterwards. A failed step leaves its finding for the check that follows.
"""

from collections.abc import Sequence
from contextlib import suppress

from coevo.flows.upkeep.workspace_check import Examined, Notify, WorkspaceCheck
from coevo.lineage.fsck.artifact_check import mend_artifacts
from coevo.lineage.fsck.history_check import Revision, damaged_objects, read_history
from coevo.lineage.fsck.line import read_line
from coevo.lineage.fsck.places import tidy
from coevo.lineage.fsck.refs import mend_empty_refs
from coevo.lineage.fsck.run_check import clear_checkout, clear_leftovers, mend_branch, mend_git, siblings, unlock
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.remote.banks import RemoteBanks
from coevo.lineage.repository import Repository
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.utilities.errors import CoevoError


def repair(workspace: Workspace, found: Examined, note: Notify, banks: RemoteBanks | None = None) -> None:
    """Repair the findings of a check; runs that a process writes to are skipped.

    Args:
        workspace: the workspace.
        found: result of ``examine``.
        note: receives progress.
        banks: banks of a remote that may have copies of damaged files.
    """
    check = WorkspaceCheck(workspace, note, banks)
    if found.elsewhere:
        tidy(workspace)
    for checked in found.runs:
        if checked.findings and not checked.in_use:
            note(f"{checked.run}: repair")
            repair_run(check, workspace.run(checked.run))


def repair_run(check: WorkspaceCheck, paths: RunPaths) -> None:
    """Repair one run, holding its lock.

    Raises:
        CoevoError: another process holds the lock.
    """
    with writer_lock(paths):
        clear_leftovers(paths)
        if not (paths.lineage / ".git").is_dir():
            return
        repository = Repository(paths.lineage, check.workspace.cache)
        unlock(repository)
        mend_empty_refs(repository)
        mend_git(repository, siblings(check.workspace, paths))
        if damaged_objects(repository):
            return
        mend_branch(repository)
        line = read_line(repository)
        revisions, unreadable = read_history(repository, line.commits, paths.name)
        if unreadable:
            return
        _mend_stores(check, paths, repository, revisions, line.dropped())


def _mend_stores(
    check: WorkspaceCheck, paths: RunPaths, repository: Repository, revisions: Sequence[Revision], gone: set[int]
) -> None:
    from coevo.tasks.checks.bank_check import BankCheck
    from coevo.tasks.checks.published import check_published, republish
    from coevo.tasks.publish.mlflow.tracking_store import tracking_store

    kept = [one for one in revisions if one.number not in gone]
    mend_artifacts(check.donors, kept)
    BankCheck.of(check.workspace, paths, kept, check.banks).mend(paths.scratch / ".bank")
    if revisions:
        clear_checkout(repository, check.donors.objects, revisions[-1].manifest.artifacts)
        _mend_config(paths, revisions[-1])
    _recover(check, paths, repository)
    store = tracking_store(check.workspace.root)
    if any(finding.mendable for finding in check_published(store, paths, revisions)):
        with suppress(CoevoError):
            check.workspace.trust.demand(paths.name, paths.read_config())
            republish(store, paths, revisions, gone)


def _recover(check: WorkspaceCheck, paths: RunPaths, repository: Repository) -> None:
    from coevo.memory.bank.bank import Bank

    with suppress(CoevoError), Lineage.open(paths.lineage, check.workspace.cache) as lineage:
        lineage.recover(Bank(paths.bank))
    # Recovery stops at the first store that it cannot restore.
    repository.retag()


def _mend_config(paths: RunPaths, head: Revision) -> None:
    from coevo.configs.load.load import validate

    try:
        paths.read_config()
    except (CoevoError, OSError, UnicodeDecodeError):
        paths.write_config(validate(dict(head.manifest.state["config"]), source=f"{paths.name}@{head.number}"))
