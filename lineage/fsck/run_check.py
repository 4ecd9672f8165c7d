"""All checks of a run's git history, in order: locks, objects, branch, manifests, tags and files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coevo.lineage.findings import Finding, lost, mendable
from coevo.lineage.fsck.empty_refs import check_empty_refs
from coevo.lineage.fsck.history_check import Revision, check_manifests, damaged_objects, read_history
from coevo.lineage.fsck.line import read_line
from coevo.lineage.fsck.mend import git_copy, siblings
from coevo.lineage.fsck.refs import check_branch, check_tags
from coevo.lineage.fsck.work_tree import check_files, check_locks
from coevo.lineage.git import Git
from coevo.lineage.repository import Repository
from coevo.lineage.workspace import RunPaths, Workspace


@dataclass(frozen=True)
class History:
    """Result of the checks of a history.

    Attributes:
        findings: problems found.
        revisions: revisions whose manifests are readable; None if git's own data is damaged.
        kept: those that were not dropped.
        whole: whether all manifests are readable.
    """

    findings: Sequence[Finding]
    revisions: Sequence[Revision] | None = None
    kept: Sequence[Revision] = ()
    whole: bool = False


def check_history(place: Workspace, paths: RunPaths, busy: bool) -> History:
    """Check the git history of a run.

    Args:
        place: the workspace; histories of its other runs may have copies of damaged objects.
        paths: files of the run.
        busy: whether a process writes to the run; then only the data of the history is checked.
    """
    run, repository = paths.name, Repository(paths.lineage, place.cache)
    found = [] if busy else list(check_locks(repository, run))
    damaged = [*check_empty_refs(repository, run)] or [*_broken_objects(repository, run, siblings(place, paths))]
    if damaged:
        # Nothing that git reports about a damaged history is reliable.
        return History([*found, *damaged])
    line = read_line(repository)
    revisions, unreadable = read_history(repository, line.commits, run)
    found += [*check_branch(repository, line, run), *unreadable, *check_manifests(repository, revisions, run)]
    if not busy:
        found += [*check_tags(repository, line, run), *check_files(repository, run)]
    gone = line.dropped()
    return History(found, revisions, [one for one in revisions if one.number not in gone], not unreadable)


def commits_of(paths: RunPaths) -> list[str]:
    """Commits of a run's branch, oldest first; empty without a repository."""
    if not (paths.lineage / ".git").is_dir():
        return []
    return Git(paths.lineage).attempt("rev-list", "--reverse", "--branches=[m]ain").stdout.decode().split()


def _broken_objects(repository: Repository, run: str, others: Sequence[Git]) -> Iterator[Finding]:
    for name in damaged_objects(repository):
        what = f"git object {name} is missing or corrupt"
        if git_copy(repository, others, name) is None:
            yield lost(run, what)
        else:
            yield mendable(run, what, "takes it from a copy that is still right")
