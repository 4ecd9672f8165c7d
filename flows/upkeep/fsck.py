"""``coevo fsck``: find whether the stores of a workspace agree."""

from collections.abc import Sequence
from dataclasses import dataclass

from coevo.flows.upkeep.workspace_check import Notify, RunCheckResult, WorkspaceCheck
from coevo.lineage.findings import Finding
from coevo.lineage.remote.banks import RemoteBanks
from coevo.lineage.workspace import RunPaths, Workspace


@dataclass(frozen=True)
class Examined:
    """Result of a check: of runs and, if all were checked, of the rest of the workspace."""

    runs: tuple[RunCheckResult, ...]
    elsewhere: tuple[Finding, ...]

    @property
    def findings(self) -> list[Finding]:
        """All findings."""
        return [*self.elsewhere, *(finding for run in self.runs for finding in run.findings)]


def examine(place: Workspace, names: Sequence[str], note: Notify, banks: RemoteBanks | None = None) -> Examined:
    """Check runs by name; without names, check all runs and the rest of the workspace.

    Args:
        place: the workspace.
        names: names of runs.
        note: receives progress.
        banks: banks of a remote that may have copies of damaged files.

    Raises:
        CoevoError: a run does not exist.
    """
    check = WorkspaceCheck(place, note, banks)
    chosen = [_named(place, name) for name in names] or place.directories()
    elsewhere = () if names else tuple(check.workspace())
    return Examined(tuple(check.run(paths) for paths in chosen), elsewhere)


def _named(place: Workspace, name: str) -> RunPaths:
    paths = place.run(name)
    if not paths.root.is_dir():
        raise place.no_run(name)
    return paths
