"""Checks that the work tree of a run equals its last revision, and that killed processes left no files."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from coevo.lineage.findings import Finding, mendable
from coevo.lineage.fsck.donors import CheckedCache
from coevo.lineage.objects.cache import LISTING
from coevo.lineage.objects.content import md5
from coevo.lineage.repository import LAYOUT, Repository
from coevo.lineage.workspace import RunPaths


def check_locks(repository: Repository, run: str) -> Iterator[Finding]:
    """Report locks of git and DVC in a run that no process uses."""
    for lock in [*repository.git.locks(), *repository.artifacts.locks()]:
        yield mendable(run, f"a killed process left the lock lineage/{lock}", "removes it")


def check_files(repository: Repository, run: str) -> Iterator[Finding]:
    """Report tracked files that differ, and files that belong to no revision."""
    if not repository.commits():
        for path in sorted(repository.root.iterdir()):
            if path.name not in LAYOUT:
                yield mendable(run, f"lineage/{path.name} belongs to no revision", "removes it")
        return
    for line in repository.git("--no-optional-locks", "status", "--porcelain", "--no-renames", "-z").split("\0"):
        if line:
            yield mendable(run, f"lineage/{line[3:]} differs from the last revision", "restores it")
    for name in _strangers(repository):
        yield mendable(run, f"lineage/{name} belongs to no revision", "removes it")


def check_checkout(
    repository: Repository, objects: CheckedCache, artifacts: Mapping[str, str], run: str
) -> Iterator[Finding]:
    """Report artifacts in the work tree that differ from the last revision."""
    for name in differing(repository.root, objects, artifacts):
        yield mendable(run, f"lineage/{name} differs from the last revision", "restores it from the cache")


def _strangers(repository: Repository) -> list[str]:
    known = {name.removesuffix(".dvc") for name in repository.git("ls-files", "*.dvc").splitlines()} | {".dvc"}
    listed = repository.git("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    return [name.rstrip("/") for name in listed.split("\0") if name and name.split("/")[0] not in known]


def differing(root: Path, objects: CheckedCache, artifacts: Mapping[str, str]) -> list[str]:
    """Artifacts whose checkout differs from their content; those with an invalid listing are left out."""
    told = {n: c for n, c in artifacts.items() if not c.endswith(LISTING) or objects.problem(c) is None}
    return [name for name, content in told.items() if _differs(root / name, objects, objects.files(content))]


def check_leftovers(paths: RunPaths) -> Iterator[Finding]:
    """Report staged and half-written files of a killed session."""
    for path in leftovers(paths):
        yield mendable(paths.name, f"a killed process left {path.relative_to(paths.root)}", "removes it")


def leftovers(paths: RunPaths) -> list[Path]:
    """Files and directories that only a running session has. A batch of a finished update may stay."""
    staged = [path for path in sorted(paths.staging.glob("*")) if path.suffix != ".parquet"]
    return [*staged, *sorted(paths.root.glob(".*.new")), *sorted(paths.scratch.glob(".*"))]


def _differs(path: Path, objects: CheckedCache, files: Mapping[str, str]) -> bool:
    found = {"."} if path.is_file() else {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()}
    return found != files.keys() or any(_changed(path / name, objects, content) for name, content in files.items())


def _changed(file: Path, objects: CheckedCache, content: str) -> bool:
    stored = objects.path(content)
    # A link to the cached object has its content, right or wrong.
    return not (stored.exists() and file.samefile(stored)) and md5(file) != content
