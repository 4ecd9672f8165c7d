"""The flow of a study: one run after another, each an ordinary run, which a repeated flow skips or continues."""

from pathlib import Path
from typing import Any

from prefect import flow, runtime

from coevo.configs.load.load_study import stored_study
from coevo.flows.console.output import console
from coevo.flows.servers.stale import mark_crashed
from coevo.flows.start_run import RunOptions, resume_run, start_run
from coevo.flows.studies.outcome import is_finished, outcome, outcomes, revisions_of
from coevo.flows.studies.publish import publish_result
from coevo.flows.studies.result import compared
from coevo.flows.studies.study_runs import StudyLock, StudyRun, runs_of
from coevo.flows.upkeep.publishing import Aloud, complete
from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError


def flow_run_name() -> str:
    """Name of a flow run, ``study NAME``: no run has a name with a space."""
    return f"study {runtime.flow_run.parameters['study']['name']}"


@flow(name="ablate", flow_run_name=flow_run_name, validate_parameters=False, persist_result=False)
def ablate(study: dict[str, Any], workspace: str, quiet: bool = False, alone: bool = False) -> int:
    """Play the runs of a study that are not finished, and publish the result after every seed.

    Args:
        study: settings of the study, see ``coevo.configs.study_config``.
        workspace: absolute path of the workspace.
        quiet: show no progress.
        alone: the process does nothing else, see ``coevo.flows.servers.watch.watching``.

    Returns:
        Exit code: 0, or that of a run that waits for approval.

    Raises:
        CoevoError: a run cannot continue, or another process plays the study; committed revisions are safe.
    """
    place, described, shown = Workspace(Path(workspace)), stored_study(study, "study"), console(quiet=quiet)
    runs = runs_of(described)
    with writer_lock(StudyLock(place, described.name)):
        mark_crashed(flow_run_name(), workspace)
        for number, each in enumerate(runs, start=1):
            shown.print(f"run {number} of {len(runs)}: {each.name}", soft_wrap=True)
            code = play(place, each, RunOptions(quiet=quiet, brief=True, alone=alone))
            if code:
                return code
            if each.seed == 1 and (found := outcome(described, each, place)) is not None:
                for line in dict.fromkeys(found.lacks.values()):
                    shown.print(f"warning: {line}", style="yellow", markup=False, soft_wrap=True)
            if number % len(described.arms) == 0:
                publish(place, described, runs)
    return 0


def play(place: Workspace, each: StudyRun, how: RunOptions) -> int:
    """Start a run, continue it, or publish what is left of a finished one; return its exit code."""
    paths = place.run(each.name)
    if not paths.created.is_file():
        return start_run(each.config, place, each.name, how).code
    if is_finished(each, revisions_of(each, place)):
        complete(place, paths)
        return 0
    return resume_run(each.name, place, how).code


def publish(place: Workspace, study: Any, runs: list[StudyRun]) -> None:
    """Publish the result of the finished runs to MLflow; a failure is a warning, and the next seed tries again."""
    try:
        publish_result(place, compared(study, outcomes(study, runs, place)), runs)
    except CoevoError as error:
        Aloud().warn(f"the study is not published: {error}")
