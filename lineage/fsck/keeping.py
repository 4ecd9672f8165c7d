"""Whether it can be told what runs keep.

A collection goes by what runs there are, by their branches and by their tags, so fsck may find no fault with these.
"""

from collections.abc import Iterable, Iterator

from configs.errors import CoevoError
from lineage.findings import Finding
from lineage.fsck.empty_refs import check_empty_refs
from lineage.fsck.line import read_line
from lineage.fsck.places import check_created
from lineage.fsck.refs import check_branch, check_tags
from lineage.repository import Repository
from lineage.workspace import RunPaths, Workspace


def require_collectable(place: Workspace, runs: Iterable[RunPaths]) -> None:
    """Make sure that these run directories say what they keep, while no writer changes it.

    Raises:
        CoevoError: fsck finds fault with a run's file ``created``, branch or tags; names the remedy.
    """
    for paths in runs:
        for finding in check_keeping(place, paths):
            raise CoevoError(f"{finding.subject}: {finding.problem}: {finding.remedy}; nothing was removed")


def check_keeping(place: Workspace, paths: RunPaths) -> Iterator[Finding]:
    """What makes a run unseen, or its history shorter than it is."""
    yield from check_created(paths)
    if paths.lineage.exists():
        repository = Repository(paths.lineage, place.cache)
        yield from check_empty_refs(repository, paths.name)
        line = read_line(repository)
        yield from check_branch(repository, line, paths.name)
        yield from check_tags(repository, line, paths.name)
