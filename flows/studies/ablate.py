"""A study from its start to its result.

The flow runs one arm after another, each an ordinary run, which a repeated flow skips or continues.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from prefect import flow, runtime

from coevo.configs.load.load_study import stored_study
from coevo.configs.study_config import StudyConfig
from coevo.envs.registry import find
from coevo.flows.console.output import console
from coevo.flows.servers.servers import prefect_in_use, use_prefect
from coevo.flows.servers.stale import mark_crashed
from coevo.flows.start_run import RunOptions, resume_run, start_run
from coevo.flows.studies.kept_study import KeptStudy
from coevo.flows.studies.outcome import Outcome, is_finished, left_of, outcome, outcomes, revisions_of
from coevo.flows.studies.result import COLUMNS, ArmRow, StudyResult, compared
from coevo.flows.studies.study_runs import StudyLock, StudyRun, arms_of, check_parts, check_runs, runs_of
from coevo.flows.upkeep.publishing import Aloud, complete
from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import Workspace
from coevo.tasks.publish.catchup import tracker_of
from coevo.tasks.publish.mlflow.pictures import ArmMean
from coevo.tasks.publish.mlflow.study import StudyPage, Table, publish_study
from coevo.tasks.publish.mlflow.tracking_store import tracking_store
from coevo.utilities.errors import CoevoError

RUN_COLUMNS = ("run", "arm", "seed", "episodes", "tokens", "seconds", "page")


def flow_run_name() -> str:
    """Name of a flow run, ``study NAME``: no run has a name with a space."""
    return f"study {runtime.flow_run.parameters['study']['name']}"


@flow(name="ablate", flow_run_name=flow_run_name, validate_parameters=False, persist_result=False)
def ablate(
    study: dict[str, Any], workspace: str, quiet: bool = False, alone: bool = False, keep: str | None = None
) -> int:
    """Play the runs of a study that are not finished, and publish the result after every seed.

    Args:
        study: settings of the study, see ``coevo.configs.study_config``.
        workspace: absolute path of the workspace.
        quiet: show no progress.
        alone: the process does nothing else, see ``coevo.flows.servers.prefect_watch.watching``.
        keep: absolute path of the folder of kept results, to decide the study in reserved worlds; None for its seeds.

    Returns:
        Exit code: 0, or that of a run that waits for approval.

    Raises:
        CoevoError: a run cannot continue, or another process plays the study; committed revisions are safe.
    """
    opened, described, shown = Workspace(Path(workspace)), stored_study(study, "study"), console(quiet=quiet)
    with writer_lock(StudyLock(opened, described.name)):
        kept = None if keep is None else KeptStudy.begun(described, Path(keep))
        runs = runs_of(described) if kept is None else kept.runs
        known = {} if kept is None else kept.outcomes()
        mark_crashed(flow_run_name(), workspace)
        for number, each in enumerate(runs, start=1):
            if each.name in known:
                continue
            partner = known.get(each.partner or "")
            _check_clock(each, partner, opened)
            shown.print(f"run {number} of {len(runs)}: {each.name}", soft_wrap=True)
            code = play(opened, each, RunOptions(quiet=quiet, brief=True, alone=alone), partner)
            if code:
                return code
            found = outcome(described, each, opened, partner)
            if found is not None:
                known[each.name] = found
                if kept is not None:
                    kept.add(found)
                if each.seed == runs[0].seed:
                    for line in dict.fromkeys(found.lacks.values()):
                        shown.print(f"warning: {line}", style="yellow", markup=False, soft_wrap=True)
            if number % len(described.arms) == 0:
                publish(opened, compared(described, list(known.values())), runs)
    return 0


def _check_clock(each: StudyRun, partner: Outcome | None, workspace: Workspace) -> None:
    """Refuse a run that takes as many seconds as one of another workspace, maybe on a machine of another speed."""
    matches = each.arm.matches
    if matches is None or matches.by != "seconds" or partner is None:
        return
    if not workspace.run(partner.run).created.is_file():
        raise CoevoError(
            f"{each.name} takes as many seconds as {partner.run}, which another workspace played: play the arms of a "
            "seed in one workspace"
        )


def play(workspace: Workspace, each: StudyRun, how: RunOptions, partner: Outcome | None = None) -> int:
    """Start a run, continue it, or publish what is left of a finished one; return its exit code.

    Args:
        workspace: where it is.
        each: the run.
        how: how this process plays it.
        partner: outcome of the run that it costs as much as.
    """
    paths = workspace.run(each.name)
    if not paths.created.is_file():
        code = start_run(each.config, workspace, each.name, how).code
    elif is_finished(each, revisions_of(each, workspace)):
        complete(workspace, paths)
        code = 0
    else:
        code = resume_run(each.name, workspace, how).code
    while not code and each.partner is not None:
        revisions = revisions_of(each, workspace)
        more = left_of(each, revisions, partner)
        if not more:
            break
        code = resume_run(each.name, workspace, replace(how, iterations=revisions[-1].iteration + more)).code
    return code


def publish(workspace: Workspace, result: StudyResult, runs: Sequence[StudyRun]) -> None:
    """Publish the result of the finished runs to MLflow; a failure is a warning, and the next seed tries again."""
    try:
        publish_result(workspace, result, runs)
    except CoevoError as error:
        Aloud().warn(f"the study is not published: {error}")


def publish_result(workspace: Workspace, result: StudyResult, runs: Sequence[StudyRun]) -> None:
    """Publish the result of a study with finished runs; without any, publish nothing.

    Raises:
        TrackingError: MLflow cannot be reached or refuses.
    """
    if not result.outcomes:
        return
    there = {paths.name for paths in workspace.runs()} & {one.run for one in result.outcomes}  # others are kept alone
    pages = {each.name: _page(workspace, each) if each.name in there else "" for each in runs}
    first = next((each.name for each in runs if each.name in there), None)
    if first is None:
        return
    study, started = result.study, workspace.existing(first)
    publish_study(
        tracking_store(workspace.root),
        StudyPage(
            study=study.name,
            origin=str(started.moment),
            timestamp=max(outcome.ended for outcome in result.outcomes),
            finished=len(result.outcomes),
            about=_about(result, pages),
            facts={
                "paper": study.paper,
                "figure": study.figure or "",
                "finding": study.finding,
                "recipe": study.recipe,
            },
            points=dict(_points(result.rows)),
            table=Table(COLUMNS, [list(asdict(row).values()) for row in result.rows]),
            runs=Table(RUN_COLUMNS, [_run_row(outcome, pages.get(outcome.run, "")) for outcome in result.outcomes]),
            marks=_marks(result),
            document=result.document(),
        ),
    )


def _page(workspace: Workspace, each: StudyRun) -> str:
    """Address of a run within MLflow's pages; empty if MLflow does not have it."""
    placed = tracker_of(workspace.root, workspace.existing(each.name), find(each.config.env.type).name).placement()
    return "" if placed.run is None else f"#/experiments/{placed.experiment}/runs/{placed.run}"


def _about(result: StudyResult, pages: dict[str, str]) -> str:
    study = result.study
    source = f"{study.paper}, {study.figure}" if study.figure else study.paper
    links = "\n".join(f"- [{name}]({page})" if page else f"- {name}" for name, page in pages.items())
    return f"**{study.name}**, after {source}: {study.finding}\n\n{result.summary()}.\n\n{links}\n"


def _points(rows: Sequence[ArmRow]) -> Iterator[tuple[str, float]]:
    for row in rows:
        values = {"mean": row.mean, "low": row.low, "high": row.high, "difference": row.difference}
        values |= {"difference_low": row.difference_low, "difference_high": row.difference_high}
        for name, value in values.items():
            if value is not None:
                yield f"{row.metric}/{row.over}/{row.arm}/{name}", value


def _marks(result: StudyResult) -> dict[str, list[ArmMean]]:
    """TreatmentGroups by metric, the reference first."""
    base, found = result.study.base.name, dict[str, list[ArmMean]]()
    for row in sorted(result.rows, key=lambda row: row.arm != base):
        if row.mean is not None:
            mark = ArmMean(row.arm, row.mean, row.low, row.high)
            found.setdefault(f"{row.metric}, {row.over}", []).append(mark)
    return found


def _run_row(outcome: Outcome, page: str) -> list[object]:
    return [outcome.run, outcome.arm, outcome.seed, *asdict(outcome.spent).values(), page]


THEN = "what is committed is safe, repeat the command to continue the study"


def start(study: StudyConfig, workspace: Workspace, quiet: bool, alone: bool, keep: Path | None = None) -> int:
    """Play the runs of a study that are not finished; return 0, or the exit code of a run that waits for approval.

    Args:
        study: the study.
        workspace: the workspace.
        quiet: show no progress.
        alone: the process does nothing else, see ``coevo.flows.servers.prefect_watch.watching``.
        keep: folder of kept results, to decide the study in reserved worlds; None for its seeds.

    Raises:
        CoevoError: an arm is not possible, a run has another configuration or cannot continue, or another process plays
            the study.
    """
    runs = runs_of(study)
    check_runs(study, runs if keep is None else list(arms_of(runs)), workspace)
    use_prefect(workspace.root)
    check_parts(runs)

    with prefect_in_use(THEN):
        folder = None if keep is None else str(keep.absolute())
        return ablate(study.model_dump(mode="json"), str(workspace.root), quiet, alone, folder)


def result_of(study: StudyConfig, workspace: Workspace, keep: Path | None = None) -> StudyResult:
    """Result of the finished runs of a study, or with a folder of kept results, of what is kept there.

    Raises:
        CoevoError: the study needs what does not exist here, or a run has another configuration or cannot be read.
    """
    if keep is not None:
        return KeptStudy.of(study, keep).result()
    return compared(study, outcomes(study, runs_of(study), workspace))
