"""Start of a study from a command or from Python: checks, the Prefect server, the flow, and the result."""

from coevo.configs.study_config import StudyConfig
from coevo.flows.servers.servers import prefect_in_use, use_prefect
from coevo.flows.studies.outcome import outcomes
from coevo.flows.studies.result import StudyResult, compared
from coevo.flows.studies.study_runs import check_parts, check_runs, runs_of
from coevo.lineage.workspace import Workspace

THEN = "what is committed is safe, repeat the command to continue the study"


def start(study: StudyConfig, workspace: Workspace, quiet: bool, alone: bool) -> int:
    """Play the runs of a study that are not finished; return 0, or the exit code of a run that waits for approval.

    Args:
        study: the study.
        workspace: the workspace.
        quiet: show no progress.
        alone: the process does nothing else, see ``coevo.flows.servers.prefect_watch.watching``.

    Raises:
        CoevoError: an arm is not possible, a run has another configuration or cannot continue, or another process plays
            the study.
    """
    runs = runs_of(study)
    check_runs(study, runs, workspace)
    use_prefect(workspace.root)
    check_parts(runs)
    from coevo.flows.studies.ablate import ablate

    with prefect_in_use(THEN):
        return ablate(study.model_dump(mode="json"), str(workspace.root), quiet, alone)


def result_of(study: StudyConfig, workspace: Workspace) -> StudyResult:
    """Result of the finished runs of a study.

    Raises:
        CoevoError: the study needs what does not exist here, or a run has another configuration or cannot be read.
    """
    return compared(study, outcomes(study, runs_of(study), workspace))
