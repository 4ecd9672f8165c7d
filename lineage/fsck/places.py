"""Checks of the workspace around the lineages: run directories, their small files, and warm-started policies."""

from collections.abc import Iterator
from pathlib import Path

from coevo.lineage.atomic_files import as_made, remove
from coevo.lineage.findings import Finding, lost, mendable
from coevo.lineage.lock import held, if_free, runs_lock_file
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.utilities.errors import CoevoError


def check_strangers(workspace: Workspace) -> Iterator[Finding]:
    """Report everything in ``runs/`` that is not a run."""
    for path in half_made(workspace):
        yield mendable(
            path.relative_to(workspace.root).as_posix(), "a killed process left an unfinished run", "removes it"
        )
    runs = {paths.root for paths in workspace.directories()}
    for path in sorted((workspace.root / "runs").glob("*")):
        name = path.relative_to(workspace.root).as_posix()
        if not path.name.startswith(".") and path not in runs:
            yield lost(name, "it is not a run", "move it out of runs/")
    for nested in sorted((workspace.root / "runs").glob("*/*/created")):
        yield lost(
            nested.parent.relative_to(workspace.root).as_posix(), "a run lies in another run", "move it out of there"
        )


def half_made(workspace: Workspace) -> list[Path]:
    """Unfinished run directories of killed processes; none that a live process may be creating."""
    hidden = sorted((workspace.root / "runs").glob(".*"))
    # In this order: the creator of a listed directory still holds its lock, or the directory is gone.
    return [path for path in hidden if not any(map(held, _locks(workspace, path))) and path.is_dir()]


def check_run_files(paths: RunPaths) -> Iterator[Finding]:
    """Check the files ``created`` and ``config.json``."""
    yield from check_created(paths)
    if not paths.root.is_dir():
        return
    try:
        paths.read_config()
    except (CoevoError, OSError, UnicodeDecodeError) as error:
        problem = " ".join(str(error).split())
        if paths.lineage.is_dir():
            yield mendable(paths.name, f"config.json cannot be read: {problem}", "takes it from the last revision")
        else:
            yield lost(paths.name, f"config.json cannot be read: {problem}", "remove the run: it has no revision")


def check_created(paths: RunPaths) -> Iterator[Finding]:
    """Check the time in ``created``; without it no command sees the run."""
    if not paths.root.is_dir():
        yield lost(paths.name, "it is a link to a missing target", "restore the target, or remove the link")
    elif not paths.created.is_file():
        yield _creation(paths, "is missing, so no command sees the run")
    else:
        try:
            paths.check_created()
        except CoevoError:
            yield _creation(paths, "is not a number of nanoseconds")


def check_warmstarts(workspace: Workspace) -> Iterator[Finding]:
    """Report warm-started policies that changed after their creation."""
    for directory in spoilt_warmstarts(workspace):
        name = directory.relative_to(workspace.root).as_posix()
        yield mendable(name, "the warm-started policy has changed", "removes it; a run that needs it creates it")


def spoilt_warmstarts(workspace: Workspace) -> list[Path]:
    """Warm-started policies that differ from the hash file next to them, or have none."""
    made = [path for path in sorted(workspace.warmstarts.glob("*")) if path.is_dir() and not path.suffix]
    return [directory for directory in made if not as_made(directory)]


def tidy(workspace: Workspace) -> None:
    """Remove everything that ``check_strangers`` and ``check_warmstarts`` report as unfinished or reproducible."""
    for path in half_made(workspace):
        with if_free(*_locks(workspace, path)) as free:
            if free:
                remove(path, path.parent)
    for path in spoilt_warmstarts(workspace):
        remove(path, workspace.warmstarts)


def _creation(paths: RunPaths, problem: str) -> Finding:
    remedy = f"write the tag coevo.origin of its MLflow run into {paths.created}, or copy the file from a backup"
    return lost(paths.name, f"created {problem}", f"{remedy}; move anything else out of runs/")


def _locks(workspace: Workspace, path: Path) -> tuple[Path, Path]:
    """Locks of the process that creates a run: the runs' lock, and for a pull the lock of its scratch directory."""
    return runs_lock_file(workspace.root), path.with_suffix(".lock")
