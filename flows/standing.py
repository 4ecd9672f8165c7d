"""Standing of each run of a workspace: what it has done, which process writes to it, and its fault if it has one."""

from collections.abc import Sequence
from dataclasses import dataclass

from configs.errors import CoevoError
from configs.run import RunConfig
from flows import history
from lineage.lineage import Lineage
from lineage.lock import holder
from lineage.manifest import Manifest
from lineage.workspace import RunPaths, Workspace
from tasks.waiting import waits

DAMAGE = (CoevoError, OSError, ValueError, RecursionError)
"""Exceptions that reading a damaged run may raise, from a missing file to one that is no text."""
LONGEST = 300
"""Most characters of a fault."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A run as it stands.

    Attributes:
        paths: its files.
        config: its configuration; None with a fault.
        revisions: its revisions, oldest first; none with a fault.
        process: id of the process that writes to it, and what for; None for none.
        fault: why it cannot be read, in one line; None for a run that can.
    """

    paths: RunPaths
    config: RunConfig | None
    revisions: Sequence[Manifest]
    process: str | None
    fault: str | None = None

    @property
    def state(self) -> str:
        """``running``, ``faulty``, ``waiting`` (for a person), ``finished`` or ``unfinished``."""
        if self.process is not None:
            return "running"
        if self.config is None:
            return "faulty"
        head = self.revisions[-1] if self.revisions else None
        if waits(head):
            return "waiting"
        return "finished" if head is not None and head.iteration >= self.config.iterations else "unfinished"


def standings(place: Workspace) -> list[Standing]:
    """All runs, newest last; first those that do not say when they were created."""
    undated = sorted({run.name for run in place.directories()} - {run.name for run in place.runs()})
    return [standing(paths, place) for paths in (*map(place.run, undated), *place.runs())]


def readable(place: Workspace) -> list[Standing]:
    """The runs without a fault, newest last: nothing can be said of the others."""
    return [found for found in standings(place) if found.fault is None]


def faults(found: Sequence[Standing]) -> list[str]:
    """A line for each run that cannot be read: its name and its fault."""
    return [f"{one.paths.name}: {one.fault}" for one in found if one.fault is not None]


def standing(paths: RunPaths, place: Workspace) -> Standing:
    """One run, whatever has become of it."""
    try:
        config, revisions = _read(paths, place)
        return Standing(paths, config, revisions, holder(paths))
    except DAMAGE as error:
        return Standing(paths, None, (), _holder(paths), _fault(paths, error))


def unfinished(recipe: str, place: Workspace) -> Standing | None:
    """The latest run of a recipe, if iterations of it remain; runs with a fault are passed over."""
    found = (one for one in reversed(readable(place)) if one.config is not None and one.config.recipe == recipe)
    latest = next(found, None)
    return None if latest is None or latest.state == "finished" else latest


def _read(paths: RunPaths, place: Workspace) -> tuple[RunConfig, list[Manifest]]:
    if not paths.root.is_dir():
        raise CoevoError("it is a link that leads nowhere: bring back what it leads to, or remove it")
    if not paths.created.is_file():
        raise CoevoError("its file `created` is missing")
    assert paths.moment >= 0
    config = paths.read_config()
    if not paths.lineage.exists():
        return config, []
    with Lineage.open(paths.lineage, place.cache) as lineage:
        revisions = lineage.log()
    history.check(revisions)
    return config, revisions


def _holder(paths: RunPaths) -> str | None:
    try:
        return holder(paths)
    except OSError:
        return None


def _fault(paths: RunPaths, error: Exception) -> str:
    words = str(error) if isinstance(error, CoevoError | OSError) else f"unreadable: {type(error).__name__}: {error}"
    line = " ".join(words.split())[:LONGEST]
    return line if "coevo fsck" in line else f"{line}; see `coevo fsck {paths.name}`"
