"""Checks of everything that decides which revisions runs keep.

Garbage collection relies on the list of runs, their branches and their tags, so fsck must find no fault in them.
"""

from collections.abc import Iterable, Iterator

from coevo.lineage.findings import Finding
from coevo.lineage.fsck.empty_refs import check_empty_refs
from coevo.lineage.fsck.line import read_line
from coevo.lineage.fsck.places import check_created
from coevo.lineage.fsck.refs import check_branch, check_tags
from coevo.lineage.repository import Repository
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.utilities.errors import CoevoError


def require_collectable(place: Workspace, runs: Iterable[RunPaths]) -> None:
    """Check that these run directories define what they keep, while no writer changes it.

    Raises:
        CoevoError: fsck finds a fault in a run's file ``created``, branch or tags; names the remedy.
    """
    for paths in runs:
        for finding in check_keeping(place, paths):
            raise CoevoError(f"{finding.subject}: {finding.problem}: {finding.remedy}; nothing was removed")


def check_keeping(place: Workspace, paths: RunPaths) -> Iterator[Finding]:
    """Report faults that hide a run or shorten its history."""
    yield from check_created(paths)
    if paths.lineage.exists():
        repository = Repository(paths.lineage, place.cache)
        yield from check_empty_refs(repository, paths.name)
        line = read_line(repository)
        yield from check_branch(repository, line, paths.name)
        yield from check_tags(repository, line, paths.name)
