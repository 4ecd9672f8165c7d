"""MLflow gets one run per study, with table, picture and links; publishing again changes nothing."""

import json
import shutil
from pathlib import Path

import pytest

from coevo.configs.load.load_study import stored_study
from coevo.flows.studies.ablate import publish_result
from coevo.flows.studies.outcome import outcomes
from coevo.flows.studies.result import compared
from coevo.flows.studies.study_runs import runs_of
from coevo.lineage.workspace import Workspace
from tests.flows.studies.conftest import SETTINGS, build


@pytest.fixture
def workspace(studied, tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    shutil.copytree(studied.root, tmp_path / "copy")
    return Workspace(tmp_path / "copy")


def publish(study, workspace):
    from mlflow import MlflowClient

    runs = runs_of(study)
    publish_result(workspace, compared(study, outcomes(study, runs, workspace)), runs)
    client = MlflowClient(f"sqlite:///{workspace.root / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("studies")
    return client, experiment, client.search_runs([experiment.experiment_id])


def read(client, run, path):
    return json.loads(Path(client.download_artifacts(run.info.run_id, f"study/{path}")).read_text())


def test_a_study_is_one_mlflow_run_that_grows_with_its_seeds(study, workspace):
    publish(study, workspace)
    client, experiment, (run,) = publish(study, workspace)
    assert (run.info.run_name, run.info.status) == ("few", "FINISHED")
    assert run.data.params["finding"] == study.finding
    assert run.data.metrics["agent/success/seen-houses/end/few/mean"] == 0.875
    assert "3 of 4 runs are finished" in run.data.tags["mlflow.note.content"]
    name = "agent/success/seen-houses/end/many/difference"
    assert [(m.step, m.value, m.timestamp) for m in client.get_metric_history(run.info.run_id, name)] == [
        (3, -0.5, 180_000)
    ]
    files = {each.path for each in client.list_artifacts(run.info.run_id, "study")}
    assert files == {"study/arms.png", "study/table.json", "study/runs.json", "study/result.json"}
    assert not any(tag.startswith("mlflow.sharedViewState") for tag in experiment.tags)

    build(workspace.root, "many", 2, "1100")
    client, _, (run,) = publish(study, workspace)
    table = read(client, run, "table.json")
    many = dict(zip(table["columns"], table["data"][1], strict=True))
    assert (many["arm"], many["pairs"], many["difference"], many["verdict"]) == ("many", 2, -0.5, "undecided")
    assert read(client, run, "result.json")["summary"].startswith("4 of 4 runs are finished")
    assert [row[0] for row in read(client, run, "runs.json")["data"]] == [each.name for each in runs_of(study)]


def test_a_study_without_finished_runs_is_not_published(study, tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    publish_result(Workspace(tmp_path), compared(study, []), runs_of(study))
    assert not (tmp_path / "mlflow.db").exists()


def test_a_study_whose_runs_lack_its_metrics_has_no_picture(workspace):
    client, _, (run,) = publish(stored_study(SETTINGS | {"metrics": [{"name": "bank/sizes"}]}, "test"), workspace)
    files = {each.path for each in client.list_artifacts(run.info.run_id, "study")}
    assert files == {"study/table.json", "study/runs.json", "study/result.json"}
    assert read(client, run, "result.json")["missing"][0].startswith("Not compared: run 'few-few-s1' has no metric")
