"""Publication of a study's result to MLflow."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from coevo.envs.registry import find
from coevo.flows.studies.outcome import Outcome
from coevo.flows.studies.result import COLUMNS, ArmRow, StudyResult
from coevo.flows.studies.study_runs import StudyRun
from coevo.lineage.workspace import Workspace
from coevo.tasks.publish.catchup import tracker_of
from coevo.tasks.publish.mlflow.pictures import ArmMean
from coevo.tasks.publish.mlflow.study import StudyPage, Table, publish_study
from coevo.tasks.publish.mlflow.tracking_store import tracking_store

FACTS = ("paper", "figure", "finding", "recipe")
RUN_COLUMNS = ("run", "arm", "seed", "episodes", "tokens", "seconds", "page")


def publish_result(place: Workspace, result: StudyResult, runs: Sequence[StudyRun]) -> None:
    """Publish the result of a study with finished runs; without any, publish nothing.

    Raises:
        TrackingError: MLflow cannot be reached or refuses.
    """
    if not result.outcomes:
        return
    pages = {each.name: _page(place, each) for each in runs if each.name in {one.run for one in result.outcomes}}
    study, started = result.study, place.existing(runs[0].name)
    publish_study(
        tracking_store(place.root),
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
            runs=Table(RUN_COLUMNS, [_run_row(outcome, pages[outcome.run]) for outcome in result.outcomes]),
            marks=_marks(result),
            document=result.document(),
        ),
    )


def _page(place: Workspace, each: StudyRun) -> str:
    """Address of a run within MLflow's pages; empty if MLflow does not have it."""
    placed = tracker_of(place.root, place.existing(each.name), find(each.config.env.type).name).placement()
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
    """Arms by metric, the reference first."""
    base, found = result.study.base.name, dict[str, list[ArmMean]]()
    for row in sorted(result.rows, key=lambda row: row.arm != base):
        if row.mean is not None:
            mark = ArmMean(row.arm, row.mean, row.low, row.high)
            found.setdefault(f"{row.metric}, {row.over}", []).append(mark)
    return found


def _run_row(outcome: Outcome, page: str) -> list[object]:
    return [outcome.run, outcome.arm, outcome.seed, *asdict(outcome.spent).values(), page]
