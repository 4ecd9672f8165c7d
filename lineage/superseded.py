"""Removal of artifacts that a run's revisions keep only until the next one."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack

from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import cache_lock, if_free, runs_lock_file
from coevo.lineage.objects.cache import Cache
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.workspace import RunPaths, Workspace


def remove_superseded(workspace: Workspace, run: RunPaths) -> int:
    """Remove what no revision of any run keeps of the artifacts in ``until_next`` of a run; return the number of files.

    Nothing is removed while this run is pushed, or another process adds objects, creates a run or collects: the next
    call removes it.

    Raises:
        CoevoError: the files of an artifact that a run keeps are unknown.
    """
    cache = Cache(workspace.cache)
    with ExitStack() as locks:
        free = locks.enter_context(if_free(runs_lock_file(workspace.root), run.root / "push.lock"))
        if not (free and locks.enter_context(cache_lock(workspace.cache, alone=True))):
            return 0
        kept = {content: paths.name for paths in workspace.directories() for content in _kept(workspace, paths)}
        gone = {
            content for content in _superseded(_history(workspace, run)) if cache.path(content).is_file()
        } - kept.keys()
        objects = cache.closure(dict.fromkeys(gone, run.name)) - cache.closure(kept) if gone else set()
        cache.remove(objects)
        return len(objects)


def _superseded(history: Iterable[Manifest]) -> Iterator[str]:
    return (manifest.artifacts[name] for manifest in history for name in manifest.until_next)


def _kept(workspace: Workspace, run: RunPaths) -> Iterator[str]:
    """Contents of the artifacts that a run keeps."""
    history = _history(workspace, run)
    if history:
        with Lineage.open(run.lineage, workspace.cache) as lineage:
            retained = lineage.history.retained()
        for revision in retained:
            yield from history[revision].kept(len(history) - 1).values()


def _history(workspace: Workspace, run: RunPaths) -> list[Manifest]:
    if not (run.lineage / ".git").is_dir():
        return []
    with Lineage.open(run.lineage, workspace.cache) as lineage:
        return lineage.history.log()
