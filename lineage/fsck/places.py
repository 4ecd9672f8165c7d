"""The workspace around the lineages: run directories and their small files, and the warm-started policies."""

from collections.abc import Iterator
from pathlib import Path

from configs.errors import CoevoError
from lineage.files import as_made, remove
from lineage.findings import Finding, lost, mendable
from lineage.lock import held, if_free, runs_lock_file
from lineage.workspace import RunPaths, Workspace


def check_strangers(place: Workspace) -> Iterator[Finding]:
    """What lies in ``runs/`` and is no run."""
    for path in half_made(place):
        yield mendable(path.relative_to(place.root).as_posix(), "a killed process left a run half made", "removes it")
    runs = {paths.root for paths in place.directories()}
    for path in sorted((place.root / "runs").glob("*")):
        name = path.relative_to(place.root).as_posix()
        if not path.name.startswith(".") and path not in runs:
            yield lost(name, "it is no run", "move it out of runs/")
    for nested in sorted((place.root / "runs").glob("*/*/created")):
        yield lost(
            nested.parent.relative_to(place.root).as_posix(), "a run lies in another run", "move it out of there"
        )


def half_made(place: Workspace) -> list[Path]:
    """Directories of runs that were being made when their process was killed; none that a live one may be making."""
    hidden = sorted((place.root / "runs").glob(".*"))
    # In this order: whoever made one that was seen holds its lock still, or the directory has gone.
    return [path for path in hidden if not any(map(held, _locks(place, path))) and path.is_dir()]


def check_run_files(paths: RunPaths) -> Iterator[Finding]:
    """``created`` and ``config.json`` say what they should."""
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
    """``created`` says when the run was made, without which no command sees it."""
    if not paths.root.is_dir():
        yield lost(paths.name, "it is a link that leads nowhere", "bring back what it leads to, or remove it")
    elif not paths.created.is_file():
        yield _creation(paths, "is missing, so no command sees the run")
    else:
        try:
            assert paths.moment >= 0
        except CoevoError:
            yield _creation(paths, "is not a number of nanoseconds")


def check_warmstarts(place: Workspace) -> Iterator[Finding]:
    """Warm-started policies are what they were when they were made."""
    for directory in spoilt_warmstarts(place):
        name = directory.relative_to(place.root).as_posix()
        yield mendable(name, "the warm-started policy is not what was made", "removes it; a run that needs it makes it")


def spoilt_warmstarts(place: Workspace) -> list[Path]:
    """Those that differ from the hash that was written beside them, or have none."""
    made = [path for path in sorted(place.warmstarts.glob("*")) if path.is_dir() and not path.suffix]
    return [directory for directory in made if not as_made(directory)]


def tidy(place: Workspace) -> None:
    """Remove what ``check_strangers`` and ``check_warmstarts`` say can be made again or was never whole."""
    for path in half_made(place):
        with if_free(*_locks(place, path)) as free:
            if free:
                remove(path, path.parent)
    for path in spoilt_warmstarts(place):
        remove(path, place.warmstarts)


def _creation(paths: RunPaths, problem: str) -> Finding:
    remedy = f"write the tag coevo.origin of its MLflow run into {paths.created}, or copy the file from a backup"
    return lost(paths.name, f"created {problem}", f"{remedy}; move what is no run out of runs/")


def _locks(place: Workspace, path: Path) -> tuple[Path, Path]:
    """What whoever makes a run holds: the runs, and where one is pulled, the place of what was fetched."""
    return runs_lock_file(place.root), path.with_suffix(".lock")
