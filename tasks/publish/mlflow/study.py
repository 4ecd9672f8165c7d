"""One MLflow run per study, in an experiment of their own: its table, its picture, and links to the runs.

Publishing a result again changes nothing: points have the time of the last commit that they are from.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from filelock import FileLock

from coevo.tasks.publish.mlflow.experiment import writable_experiment
from coevo.tasks.publish.mlflow.page_tables import TAG as TABLES
from coevo.tasks.publish.mlflow.pictures import ArmMean, intervals
from coevo.tasks.publish.mlflow.run_names import free_name, other_names
from coevo.tasks.publish.mlflow.tracking_store import TrackingStore, check_database, client, package, translated

EXPERIMENT = "studies"
TABLE = "study/table.json"
RUNS = "study/runs.json"
RESULT = "study/result.json"
PICTURE = "study/arms.png"


@dataclass(frozen=True)
class Table:
    """Rows of a table, with the names of its columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    def text(self) -> str:
        """The table as MLflow's pages read it."""
        return json.dumps({"columns": list(self.columns), "data": [list(row) for row in self.rows]})


@dataclass(frozen=True)
class StudyPage:
    """Result of a study to publish.

    Attributes:
        study: name of the study.
        origin: creation time of its first run, which distinguishes studies of the same name.
        timestamp: time of the last commit of its runs, in ms since 1970.
        finished: number of finished runs, the step of the points.
        about: description in Markdown, with links to the runs.
        facts: the study in a few values, which do not change.
        points: value by metric name.
        table: the comparison.
        runs: the finished runs.
        marks: arms of the picture, by metric.
        document: the whole result in JSON values.
    """

    study: str
    origin: str
    timestamp: int
    finished: int
    about: str
    facts: Mapping[str, str]
    points: Mapping[str, float]
    table: Table
    runs: Table
    marks: Mapping[str, Sequence[ArmMean]]
    document: Mapping[str, Any]


def publish_study(store: TrackingStore, page: StudyPage) -> str:
    """Publish the result of a study and return the id of its MLflow run.

    Raises:
        TrackingError: MLflow cannot be reached or refuses.
    """
    with translated(store, "does not take the study"):
        check_database(store)
        mlflow, entities = client(store), package().entities
        run = _connect(mlflow, store, page)
        mlflow.log_text(run, page.table.text(), TABLE)
        mlflow.log_text(run, page.runs.text(), RUNS)
        mlflow.log_text(run, json.dumps(page.document), RESULT)
        if page.marks:  # none where the runs lack every metric of the study
            mlflow.log_figure(run, intervals(page.study, page.marks), PICTURE)
        named = json.dumps([{"path": path, "type": "table"} for path in (TABLE, RUNS)])
        tags = {"mlflow.note.content": page.about, TABLES: named, "coevo.finished": str(page.finished)}
        when = (page.timestamp, page.finished)
        points = [entities.Metric(name, value, *when) for name, value in page.points.items()]
        mlflow.log_batch(run, metrics=points, tags=[entities.RunTag(*pair) for pair in tags.items()])
        mlflow.set_terminated(run, "FINISHED", page.timestamp)
    return run


def _connect(mlflow: Any, store: TrackingStore, page: StudyPage) -> str:
    """Id of the MLflow run of the study, which is created once."""
    with FileLock(store.lock):
        experiment = writable_experiment(mlflow, store, EXPERIMENT, of_runs=False)
        query = f"tags.`coevo.study` = '{page.study}' and tags.`coevo.origin` = '{page.origin}'"
        found = mlflow.search_runs([experiment], query, max_results=1)
        if found:
            return str(found[0].info.run_id)
        name = free_name(page.study, other_names(mlflow, experiment, page.study))
        tags = {"coevo.study": page.study, "coevo.origin": page.origin}
        made = mlflow.create_run(experiment, start_time=int(page.origin) // 1_000_000, tags=tags, run_name=name)
    params = [package().entities.Param(key, value) for key, value in page.facts.items()]
    mlflow.log_batch(made.info.run_id, params=params)
    return str(made.info.run_id)
