"""Checks of a workspace, of what lies outside of runs and of the stores of each run, and repair.

``coevo fsck --repair`` repairs in an order in which no intact data is lost: copies come first, removals
afterwards. A failed step leaves its finding for the check that follows.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from coevo.lineage.findings import Finding, lost
from coevo.lineage.fsck.donors import Donors
from coevo.lineage.fsck.history_check import Revision, damaged_objects, read_history
from coevo.lineage.fsck.line import read_line
from coevo.lineage.fsck.places import check_run_files, check_strangers, check_warmstarts, tidy
from coevo.lineage.fsck.refs import mend_empty_refs
from coevo.lineage.fsck.run_check import (
    History,
    check_artifacts,
    check_history,
    clear_checkout,
    clear_leftovers,
    commits_of,
    mend_artifacts,
    mend_branch,
    mend_git,
    siblings,
    unlock,
)
from coevo.lineage.fsck.work_tree import check_checkout, check_leftovers
from coevo.lineage.git import Git
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import in_use, writer_lock
from coevo.lineage.remote.banks import RemoteBanks
from coevo.lineage.repository import Repository
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.utilities.errors import CoevoError

Notify = Callable[[str], None]
MAX_ATTEMPTS = 3
"""Most checks of one run: gc may drop revisions again and again."""


@dataclass(frozen=True)
class RunCheckResult:
    """Result of a run's checks.

    Attributes:
        run: name of the run.
        revisions: number of revisions.
        in_use: whether a process writes to it; then only the data of its history was checked.
        findings: problems found.
    """

    run: str
    revisions: int
    in_use: bool
    findings: tuple[Finding, ...]


class WorkspaceCheck:
    """Checks of one workspace, read-only; each object of the cache is read once."""

    def __init__(self, workspace: Workspace, note: Notify, banks: RemoteBanks | None = None) -> None:
        """Args:
        workspace: the workspace.
        note: receives progress.
        banks: banks of a remote that may have copies of damaged files.
        """
        self.workspace = workspace
        self.banks = banks
        self.donors = Donors(workspace)
        self._note = note

    def outside_runs(self) -> list[Finding]:
        """Check everything outside of runs."""
        self._note("workspace")
        return [*check_strangers(self.workspace), *check_warmstarts(self.workspace)]

    def run(self, paths: RunPaths) -> RunCheckResult:
        """Check one run; again if gc drops revisions meanwhile, whose parts it removes.

        If a writer appears meanwhile, only the data of its history counts.
        """
        busy = in_use(paths)
        for _ in range(MAX_ATTEMPTS):
            before = _standing(paths)
            found = list(self._findings(paths, busy))
            now = _standing(paths)
            if now.dropped == before.dropped and (busy or (now.commits == before.commits and not in_use(paths))):
                break
            busy = in_use(paths) or now.commits != before.commits
            self.donors = Donors(self.workspace)
        return RunCheckResult(paths.name, len(now.commits), busy, tuple(found))

    def _findings(self, paths: RunPaths, busy: bool) -> Iterator[Finding]:
        yield from check_run_files(paths)
        if not busy:
            yield from check_leftovers(paths)
        if not paths.lineage.exists():
            return
        try:
            yield from self._stores(paths, busy)
        except (CoevoError, OSError) as error:
            yield lost(paths.name, str(error))

    def _stores(self, paths: RunPaths, busy: bool) -> Iterator[Finding]:
        from coevo.tasks.checks.manifest_checks import BankCheck, check_latest

        run = paths.name
        self._note(f"{run}: history")
        history = check_history(self.workspace, paths, busy)
        yield from history.findings
        if history.revisions is None:
            return
        self._note(f"{run}: artifacts of {len(history.kept)} revisions")
        yield from check_artifacts(self.donors, history.kept, run, busy)
        self._note(f"{run}: bank")
        versions = BankCheck.of(self.workspace, paths, history.kept, self.banks).versions()
        yield from versions
        if busy or not history.whole:
            return
        if history.revisions:
            head = history.revisions[-1]
            repository = Repository(paths.lineage, self.workspace.cache)
            yield from check_checkout(repository, self.donors.objects, head.manifest.artifacts, run)
            yield from check_latest(paths.bank, head, versions, run)
        # A writer publishes revisions that are newer than the history read here.
        yield from self._published(paths, history)

    def _published(self, paths: RunPaths, history: History) -> Iterator[Finding]:
        from coevo.tasks.checks.manifest_checks import check_published
        from coevo.tasks.publish.mlflow.tracking_store import tracking_store

        self._note(f"{paths.name}: published data")
        if paths.created.is_file():
            yield from check_published(tracking_store(self.workspace.root), paths, history.revisions or ())


@dataclass(frozen=True)
class _Standing:
    """Commits of a run, and the references of those that were dropped."""

    commits: Sequence[str]
    dropped: str


def _standing(paths: RunPaths) -> _Standing:
    has = (paths.lineage / ".git").is_dir()
    dropped = Git(paths.lineage).attempt("for-each-ref", "refs/dropped").stdout.decode() if has else ""
    return _Standing(commits_of(paths), dropped)


@dataclass(frozen=True)
class Examined:
    """Result of a check: of runs and, if all were checked, of the rest of the workspace."""

    runs: tuple[RunCheckResult, ...]
    elsewhere: tuple[Finding, ...]

    @property
    def findings(self) -> list[Finding]:
        """All findings."""
        return [*self.elsewhere, *(finding for run in self.runs for finding in run.findings)]


def examine(workspace: Workspace, names: Sequence[str], note: Notify, banks: RemoteBanks | None = None) -> Examined:
    """Check runs by name; without names, check all runs and the rest of the workspace.

    Args:
        workspace: the workspace.
        names: names of runs.
        note: receives progress.
        banks: banks of a remote that may have copies of damaged files.

    Raises:
        CoevoError: a run does not exist.
    """
    check = WorkspaceCheck(workspace, note, banks)
    chosen = [_named(workspace, name) for name in names] or workspace.directories()
    elsewhere = () if names else tuple(check.outside_runs())
    return Examined(tuple(check.run(paths) for paths in chosen), elsewhere)


def _named(workspace: Workspace, name: str) -> RunPaths:
    paths = workspace.run(name)
    if not paths.root.is_dir():
        raise workspace.no_run(name)
    return paths


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
    from coevo.tasks.checks.manifest_checks import BankCheck, check_published, republish
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
