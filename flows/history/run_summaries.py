"""RunSummary of each run of a workspace: its revisions, the process that writes to it, and its fault if any."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from coevo.flows.history import history
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import holder
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import LoopRecord, RunStatus, does_loop, read_record, status_of
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.tasks.cost import wall_seconds
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.configs.run_config import RunConfig

DAMAGE = (CoevoError, OSError, ValueError, RecursionError)
"""Exceptions that reading a damaged run may raise, from missing to undecodable files."""
MAX_FAULT_CHARS = 300
"""Most characters of a fault."""
COLUMNS = (
    "run", "recipe", "parent", "revision", "iteration", "start_success", "final_success", "evaluated", "seconds",
    "status", "stage", "reason", "process", "fault",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunSummary:
    """State of a run.

    Attributes:
        paths: its files.
        config: its configuration; None with a fault.
        revisions: its revisions, oldest first; empty with a fault.
        process: id and purpose of the process that writes to it, or None.
        fault: reason why it cannot be read, in one line, or None.
        record: of the last process that ran its loop in this workspace, or None.
    """

    paths: RunPaths
    config: "RunConfig | None"
    revisions: Sequence[Manifest]
    process: str | None
    fault: str | None = None
    record: LoopRecord | None = None

    @property
    def status(self) -> RunStatus:
        """Status of the run, with its stage and reason."""
        if self.process is not None and does_loop(self.record, self.process):
            return RunStatus("running", None if self.record is None else self.record.stage)
        if self.config is None:
            return RunStatus("faulty", None, self.fault)
        head = self.revisions[-1] if self.revisions else None
        return status_of(self.paths.name, self.config.iterations, head, self.record)

    @property
    def parent(self) -> str | None:
        """``RUN@N`` that the run branched from; None if it began by itself."""
        origins = [revision.observed.get("branched_from") for revision in self.revisions]
        return next((f"{origin['run']}@{origin['revision']}" for origin in reversed(origins) if origin), None)


def run_summaries(workspace: Workspace) -> list[RunSummary]:
    """All runs, newest last; runs without a time of creation come first."""
    undated = sorted({run.name for run in workspace.directories()} - {run.name for run in workspace.runs()})
    return [run_summary(paths, workspace) for paths in (*map(workspace.run, undated), *workspace.runs())]


def readable(workspace: Workspace) -> list[RunSummary]:
    """Runs without a fault, newest last."""
    return [found for found in run_summaries(workspace) if found.fault is None]


def faults(found: Sequence[RunSummary]) -> list[str]:
    """One line per run that cannot be read: its name and its fault."""
    return [f"{one.paths.name}: {one.fault}" for one in found if one.fault is not None]


def run_summary(paths: RunPaths, workspace: Workspace) -> RunSummary:
    """RunSummary of one run, damaged or not."""
    try:
        config, revisions = _read(paths, workspace)
        return RunSummary(paths, config, revisions, holder(paths), record=read_record(paths))
    except DAMAGE as error:
        return RunSummary(paths, None, (), _holder(paths), _fault(paths, error))


def unfinished(recipe: str, workspace: Workspace) -> RunSummary | None:
    """The latest run of a recipe if iterations remain; runs with a fault are skipped."""
    found = (one for one in reversed(readable(workspace)) if one.config is not None and one.config.recipe == recipe)
    latest = next(found, None)
    return None if latest is None or latest.status.status == "finished" else latest


def _read(paths: RunPaths, workspace: Workspace) -> "tuple[RunConfig, list[Manifest]]":
    if not paths.root.is_dir():
        raise CoevoError("it is a link that leads nowhere: bring back what it leads to, or remove it")
    if not paths.created.is_file():
        raise CoevoError("its file `created` is missing")
    paths.check_created()
    config = paths.read_config()
    if not paths.lineage.exists():
        return config, []
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        revisions = lineage.history.log()
    history.check(revisions)
    return config, revisions


def _holder(paths: RunPaths) -> str | None:
    try:
        return holder(paths)
    except OSError:
        return None


def _fault(paths: RunPaths, error: Exception) -> str:
    words = str(error) if isinstance(error, CoevoError | OSError) else f"unreadable: {type(error).__name__}: {error}"
    line = " ".join(words.split())[:MAX_FAULT_CHARS]
    return line if "coevo fsck" in line else f"{line}; see `coevo fsck {paths.name}`"


def run_rows(workspace: Workspace) -> list[dict[str, Any]]:
    """Rows of ``COLUMNS`` for the runs of a workspace, newest last."""
    return [run_row(one) for one in run_summaries(workspace)]


def run_row(one: RunSummary) -> dict[str, Any]:
    """Row of ``COLUMNS`` for one run."""
    recipe = None if one.config is None else one.config.recipe
    figures = _figures(one.revisions) if one.revisions else {}
    about = {"run": one.paths.name, "recipe": recipe, "parent": one.parent, "process": one.process, "fault": one.fault}
    return dict.fromkeys(COLUMNS) | figures | about | asdict(one.status)


def _figures(revisions: Sequence[Manifest]) -> dict[str, object]:
    head, last = revisions[-1], history.evaluated(revisions)
    return {
        "revision": head.revision,
        "iteration": head.iteration,
        "start_success": history.held_out(revisions[0]),
        "final_success": None if last is None else history.held_out(last),
        "evaluated": None if last is None else last.revision,
        "seconds": round(sum(map(wall_seconds, revisions)), 3),
    }
