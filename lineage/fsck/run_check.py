"""All checks of a run: of its git history, in order, and of its artifacts.

The history has locks, objects, branch, manifests, tags and files. The cache must have every artifact of every kept
revision, with the right content.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from coevo.lineage.atomic_files import remove
from coevo.lineage.blobs import git_hash
from coevo.lineage.findings import Finding, lost, mendable
from coevo.lineage.fsck.donors import CheckedCache, Donors
from coevo.lineage.fsck.history_check import Revision, check_manifests, damaged_objects, read_history
from coevo.lineage.fsck.line import read_line
from coevo.lineage.fsck.refs import check_branch, check_empty_refs, check_tags
from coevo.lineage.fsck.work_tree import check_files, check_locks, differing, leftovers
from coevo.lineage.git import Git
from coevo.lineage.objects.cache import LISTING
from coevo.lineage.repository import Repository
from coevo.lineage.workspace import RunPaths, Workspace

Uses = Mapping[str, Sequence[tuple[int, str]]]
"""Content hash -> each revision that needs the object, with its name there, such as ``policy/weights``."""


def uses(objects: CheckedCache, kept: Sequence[Revision], busy: bool = False) -> Uses:
    """Objects that the revisions need. Files of an invalid listing are left out: they are unknown.

    Args:
        objects: of the cache.
        kept: revisions that were not dropped.
        busy: True if a process may be making a newer revision, which takes the place of the last one.
    """
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    last = max((revision.number for revision in kept), default=0) + busy
    artifacts = [(revision.number, *item) for revision in kept for item in revision.manifest.kept(last).items()]
    objects.examine(content for _, _, content in artifacts if content.endswith(LISTING))
    for number, name, content in artifacts:
        found[content].append((number, name))
        if content.endswith(LISTING) and objects.problem(content) is None:
            for path, inner in objects.files(content).items():
                found[inner].append((number, f"{name}/{path}"))
    objects.examine(found)
    return found


def check_artifacts(donors: Donors, kept: Sequence[Revision], run: str, busy: bool) -> Iterator[Finding]:
    """Report each object that is missing or corrupt; ``busy`` as in ``uses``."""
    objects = donors.objects
    for content, needed in uses(objects, kept, busy).items():
        problem = objects.problem(content)
        if problem is None:
            continue
        numbers = ", ".join(str(number) for number in dict.fromkeys(number for number, _ in needed))
        what = f"{needed[0][1]} of revision {numbers} is {problem} in the cache ({_short(objects, content)})"
        subject = f"{run}@{needed[0][0]}"
        if donors.of(content, Path(needed[0][1])) is None:
            yield lost(subject, what, f"no other copy found: restore it from a remote (`coevo pull`) or a backup of "
                       f"{objects.root}")  # fmt: skip
        else:
            yield mendable(subject, what, "takes it from a valid copy")


def mend_artifacts(donors: Donors, kept: Sequence[Revision]) -> None:
    """Restore objects from other copies; listings first, since they name the files that are needed."""
    objects = donors.objects
    for listings in (True, False):
        for content, needed in uses(objects, kept).items():
            if content.endswith(LISTING) == listings and objects.problem(content) is not None:
                donors.restore(content, Path(needed[0][1]))
                objects.forget(content)


def _short(objects: CheckedCache, content: str) -> str:
    return objects.path(content).relative_to(objects.root.parent).as_posix()


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


def check_history(workspace: Workspace, paths: RunPaths, busy: bool) -> History:
    """Check the git history of a run.

    Args:
        workspace: the workspace; histories of its other runs may have copies of damaged objects.
        paths: files of the run.
        busy: whether a process writes to the run; then only the data of the history is checked.
    """
    run, repository = paths.name, Repository(paths.lineage, workspace.cache)
    found = [] if busy else list(check_locks(repository, run))
    damaged = [*check_empty_refs(repository, run)] or [*_broken_objects(repository, run, siblings(workspace, paths))]
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


def unlock(repository: Repository) -> None:
    """Remove the locks of killed processes."""
    repository.git.settle()
    repository.artifacts.discard_locks()


def mend_git(repository: Repository, siblings: Sequence[Git]) -> None:
    """Restore damaged git objects from the work tree or from another run's history."""
    for name in damaged_objects(repository):
        content = git_copy(repository, siblings, name)
        if content is not None:
            kind, data = content
            loose = repository.root / ".git" / "objects" / name[:2] / name[2:]
            loose.unlink(missing_ok=True)
            repository.git.store(kind, data)


def siblings(workspace: Workspace, paths: RunPaths) -> list[Git]:
    """Histories of the other runs of a workspace, since branches share objects."""
    others = [other for other in workspace.directories() if other.name != paths.name]
    return [Git(other.lineage) for other in others if (other.lineage / ".git").is_dir()]


def git_copy(repository: Repository, siblings: Sequence[Git], name: str) -> tuple[str, bytes] | None:
    """Kind and content of a git object, from a place that still has it; None if no place has it."""
    tracked = repository.git.attempt("ls-files", "-z").stdout.decode().split("\0")
    for path in (repository.root / file for file in tracked if file):
        data = path.read_bytes() if path.is_file() else b""
        if git_hash("blob", data) == name:
            return "blob", data
    for other in siblings:
        kind = other.attempt("cat-file", "-t", name).stdout.decode().strip()
        data = other.attempt("cat-file", kind, name).stdout if kind else b""
        if kind and git_hash(kind, data) == name:
            return kind, data
    return None


def mend_branch(repository: Repository) -> None:
    """Set HEAD to ``main``, and ``main`` to the last revision that has a tag."""
    repository.git("symbolic-ref", "HEAD", "refs/heads/main")
    line = read_line(repository)
    if line.full != line.commits:
        repository.git("update-ref", "refs/heads/main", line.full[-1])


def clear_checkout(repository: Repository, objects: CheckedCache, artifacts: Mapping[str, str]) -> None:
    """Remove artifacts from the work tree that differ from the last revision, if the cache has all of them."""
    for name in differing(repository.root, objects, artifacts):
        if all(objects.problem(content) is None for content in objects.files(artifacts[name]).values()):
            remove(repository.root / name, repository.root)


def clear_leftovers(paths: RunPaths) -> None:
    """Remove staged and half-written files."""
    for path in leftovers(paths):
        remove(path, paths.root)
