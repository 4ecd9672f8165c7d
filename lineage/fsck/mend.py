"""Repair of a lineage, under the run's lock. Each step writes to a temporary file and renames, and can be repeated.

Valid content is copied before anything is removed, so that an incomplete repair loses nothing.
"""

from collections.abc import Mapping, Sequence

from coevo.lineage.atomic_files import remove
from coevo.lineage.blobs import git_hash
from coevo.lineage.fsck.checked_cache import CheckedCache
from coevo.lineage.fsck.history_check import damaged_objects
from coevo.lineage.fsck.line import read_line
from coevo.lineage.fsck.work_tree import differing, leftovers
from coevo.lineage.git import Git
from coevo.lineage.repository import Repository
from coevo.lineage.workspace import RunPaths, Workspace


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


def siblings(place: Workspace, paths: RunPaths) -> list[Git]:
    """Histories of the other runs of a workspace, since branches share objects."""
    others = [other for other in place.directories() if other.name != paths.name]
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
