"""MLflow, for real, on a database in a temporary folder."""

import json
import socket
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from support.batches import entry
from support.dying import Killed, dying
from support.publications import CONFIG, publication

from coevo.lineage.status import RunStatus
from coevo.tasks.publish.mlflow.page_tables import description
from coevo.tasks.publish.mlflow.publication import identity
from coevo.tasks.publish.mlflow.tracker import Tracker
from coevo.tasks.publish.mlflow.tracking_store import TrackingError, TrackingStore, tracking_store


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        yield tracking_store(tmp_path_factory.mktemp("wörk space"))


@pytest.fixture(scope="module")
def client(store):
    from mlflow import MlflowClient

    Tracker(store, "first", "first", "first").publish(publication(0))
    return MlflowClient(store.uri)


def found(client, experiment):
    return client.search_runs([client.get_experiment_by_name(experiment).experiment_id])


def points(client, run, name):
    return [(m.step, m.value, m.timestamp) for m in client.get_metric_history(run.info.run_id, name)]


def read(client, run, path):
    return json.loads(Path(client.download_artifacts(run.info.run_id, path)).read_text())


def test_revisions_are_steps_of_one_run_however_often_they_are_published(store, client):
    for tracker in (Tracker(store, "steps", "demo-1", "abc") for _ in range(2)):
        for revision in range(3):
            tracker.publish(publication(revision, [entry()]))
    (run,) = found(client, "steps")
    assert run.info.run_name == "demo-1"
    assert run.data.tags["mlflow.source.name"] == run.data.params["recipe"] == "steps-grpo"
    assert run.data.params["seed"] == "7"
    assert "the run `demo-1`" in run.data.tags["mlflow.note.content"]
    assert points(client, run, "agent/success/train") == [(n, 0.25 * n, 1_700_000_000_000 + 1000 * n) for n in range(3)]
    assert points(client, run, "cost/seconds/rollout")[2][1] == 2.5
    tags = {name: value for name, value in run.data.tags.items() if name.startswith("coevo.")}
    assert max(map(len, tags.values())) < 20, "no tag is a whole hash"
    assert len(tags.pop("coevo.bank")) == 12
    assert tags == {
        "coevo.run": "demo-1",
        "coevo.origin": "abc",
        "coevo.method": "grpo",
        "coevo.env": "steps",
        "coevo.seed": "7",
        "coevo.setting": identity(CONFIG, "steps")["coevo.setting"],
        "coevo.revision": "2",
        "coevo.commit": "commit2",
        "coevo.parent": "1",
        "coevo.config": "c0",
        "coevo.status": "running",
        "coevo.stage": "iteration 3 of 3",
        "coevo.reason": "",
    }


def test_runs_of_one_name_and_different_origin_stay_apart(store, client):
    for origin in ("abc", "def", "ghi"):
        Tracker(store, "origins", "demo-1", origin).publish(publication(0))
    Tracker(store, "origins", "demo-10", "abc").publish(publication(0))
    names = sorted(run.info.run_name for run in found(client, "origins"))
    assert names == ["demo-1", "demo-1 (2)", "demo-1 (3)", "demo-10"]


def test_runs_that_an_earlier_version_named_alike_are_renamed_once_each(store, client):
    trackers = [Tracker(store, "renamed", "demo-1", origin) for origin in ("abc", "def")]
    for tracker in trackers:
        tracker.publish(publication(0))
    for run in found(client, "renamed"):
        client.update_run(run.info.run_id, name="grpo-steps-7")
    for tracker in [Tracker(store, "renamed", "demo-1", origin) for origin in ("abc", "def", "abc", "def")]:
        tracker.rename()
    names = {run.data.tags["coevo.origin"]: run.info.run_name for run in found(client, "renamed")}
    assert names == {"abc": "demo-1", "def": "demo-1 (2)"}


def test_configuration_is_a_file_its_first_version_the_parameters_and_its_panels_data_once(store, client):
    tracker = Tracker(store, "config", "demo-1", "abc")
    tracker.publish(publication(0))
    tracker.publish(publication(1, config=CONFIG | {"seed": 8}, config_hash="c1"))
    tracker.publish(publication(2, config=CONFIG | {"seed": 8}, config_hash="c1"))
    (run,) = found(client, "config")
    assert run.data.params == {
        "recipe": "steps-grpo",
        "seed": "7",
        "iterations": "3",
        "env.type": "steps",
        "rollout.tasks": "16",
        "rollout.sampling.temperature": "1.0",
        "evaluation.panels": "['seen-houses']",
    }
    assert {f.path for f in client.list_artifacts(run.info.run_id, "config")} == {"config/r0.json", "config/r1.json"}
    assert read(client, run, "config/r1.json")["seed"] == 8
    used = [(each.dataset.name, each.tags[0].value, each.dataset.digest) for each in run.inputs.dataset_inputs]
    assert sorted(each[:2] for each in used) == [("config", "training"), ("config/seen-houses", "evaluation")]
    assert "p" * 36 in {digest for *_, digest in used}


def test_more_parameters_than_one_call_takes(store, client):
    config = CONFIG | {f"option{n}": n for n in range(250)}
    Tracker(store, "many", "demo-1", "abc").publish(publication(0, config=config))
    assert len(found(client, "many")[0].data.params) == 257


def test_the_bank_is_a_table_only_where_it_changed_and_is_there(store, client):
    tracker = Tracker(store, "bank", "demo-1", "abc")
    for revision, entries in enumerate([[], [entry()], [entry()], [entry(), entry("other")]]):
        tracker.publish(publication(revision, entries))
    tracker.publish(replace(publication(4), entries=None))
    (run,) = found(client, "bank")
    assert [step for step, *_ in points(client, run, "agent/success/train")] == [0, 1, 2, 3, 4]
    assert {f.path for f in client.list_artifacts(run.info.run_id, "bank")} == {f"bank/r{n}.json" for n in (0, 1, 3)}
    table = read(client, run, "bank/r3.json")
    assert [row[table["columns"].index("strategy")] for row in table["data"]] == ["mug in safe", "other"]
    tables = [{"path": f"bank/r{n}.json", "type": "table"} for n in (3, 1, 0)]
    assert json.loads(run.data.tags["mlflow.loggedArtifacts"]) == tables


def test_of_very_many_tables_the_last_ones_are_known_as_such(store, client):
    tracker = Tracker(store, "tables", "demo-1", "abc")
    many = [{"path": f"bank/changes-r{n}.json", "type": "table"} for n in range(300)]
    tracker.publish(publication(1, []))
    (run,) = found(client, "tables")
    client.set_tag(run.info.run_id, "mlflow.loggedArtifacts", json.dumps(many)[:7900].rpartition(", ")[0] + "]")
    Tracker(store, "tables", "demo-1", "abc").publish(publication(301, [entry()]))
    (run,) = found(client, "tables")
    tables = json.loads(run.data.tags["mlflow.loggedArtifacts"])
    assert tables[:2] == [{"path": "bank/r301.json", "type": "table"}, many[0]]
    assert 100 < len(tables) < 300


def test_what_became_of_the_bank_is_a_table_beside_it(store, client):
    tracker = Tracker(store, "changes", "demo-1", "abc")
    kept, edited = entry("kept"), entry("goes")
    tracker.publish(replace(publication(1, [kept, edited]), before=[]))
    now = [kept, replace(edited, example="go oven"), entry("new")]
    tracker.publish(replace(publication(2, now), before=[kept, edited, entry("old")]))
    (run,) = found(client, "changes")
    assert [row[0] for row in read(client, run, "bank/changes-r1.json")["data"]] == ["admitted", "admitted"]
    table = read(client, run, "bank/changes-r2.json")
    said = [[row[table["columns"].index(name)] for name in ("change", "strategy", "example")] for row in table["data"]]
    assert said == [["admitted", "new", "go safe"], ["edited", "goes", "go oven"], ["retired", "old", "go safe"]]


def test_seeds_of_one_setting_share_a_tag_and_other_settings_do_not():
    settings = [
        identity(CONFIG | change, "steps")["coevo.setting"]
        for change in ({}, {"seed": 8}, {"recipe": "mine", "iterations": 9}, {"rollout": {"tasks": 17}})
    ]
    assert settings[0] == settings[1] == settings[2] != settings[3]


def test_an_evaluated_revision_is_a_model_with_its_success_once(store, client):
    for _ in range(2):
        tracker = Tracker(store, "models", "demo-1", "abc")
        for revision in (0, 1):
            made = publication(revision)
            made.manifest.state["metrics"]["agent/success/seen-houses"] = 0.5 + revision / 4
            made.manifest.state["panels"] = {"seen-houses": "p" * 64} if revision else {}
            tracker.publish(made)
    (run,) = found(client, "models")
    (model,) = client.search_logged_models([run.info.experiment_id])
    assert model.tags["coevo.reference"] == "demo-1@1"
    assert model.status == "READY"
    assert [(metric.key, metric.value, metric.step) for metric in model.metrics] == [
        ("agent/success/seen-houses", 0.75, 1)
    ]
    assert [step for step, *_ in points(client, run, "agent/success/seen-houses")] == [0, 1]


@pytest.mark.parametrize("step", ["create_logged_model", "log_outputs", "finalize_logged_model"])
def test_a_model_that_a_kill_left_half_made_is_completed(store, client, step):
    name = f"half-{step}"
    made = publication(1)
    made.manifest.state["metrics"]["agent/success/seen-houses"] = 0.75
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(client), step, dying(getattr(type(client), step)))
        with pytest.raises(Killed):
            Tracker(store, name, "demo-1", "abc").publish(made)
    for _ in range(2):
        Tracker(store, name, "demo-1", "abc").publish(made)
    (run,) = found(client, name)
    (model,) = client.search_logged_models([run.info.experiment_id])
    assert (model.name, model.status, model.tags["coevo.commit"]) == ("demo-1-r1", "READY", "commit1")
    assert [(metric.key, metric.value, metric.step) for metric in model.metrics] == [
        ("agent/success/seen-houses", 0.75, 1)
    ]
    assert [output.model_id for output in run.outputs.model_outputs] == [model.model_id]
    assert [step for step, *_ in points(client, run, "agent/success/seen-houses")] == [1]


def test_pictures_show_success_and_distributions_whose_bins_are_no_metrics(store, client):
    made = publication(3)
    made.manifest.state["metrics"]["bank/retrieval/count_histogram/from_4"] = 2.0
    Tracker(store, "pictures", "demo-1", "abc").publish(made)
    (run,) = found(client, "pictures")
    logged = {file.path: file.file_size for file in client.list_artifacts(run.info.run_id, "pictures")}
    assert set(logged) == {f"pictures/{name}.png" for name in ("success", "advantages-r3", "retrievals-r3")}
    assert min(logged.values()) > 5000
    assert not [name for name in run.data.metrics if "histogram" in name]


def test_success_on_the_first_panel_is_the_first_metric_in_the_order_of_mlflows_page(store, client):
    made = publication(3)
    made.manifest.state["metrics"] |= {"agent/success/seen-houses": 0.5, "bank/size": 7.0, "agent/expert/train": 1.0}
    Tracker(store, "overview", "demo-1", "abc").publish(made)
    (run,) = found(client, "overview")
    first = sorted(run.data.metrics)[:3]
    assert first == ["Overview/Success", "Overview/bank size", "Overview/training success"]
    assert [run.data.metrics[name] for name in first] == [0.5, 7.0, 0.75]
    view = json.loads(client.get_experiment(run.info.experiment_id).tags["mlflow.sharedViewState.coevo"])
    columns = json.loads(view["state"])["selectedColumns"]
    assert columns[:4] == [f"metrics.`{first[0]}`", f"metrics.`{first[1]}`", "params.`seed`", "params.`recipe`"]


def test_the_bank_is_a_registered_model_with_a_version_and_a_description_wherever_it_changed(store, client):
    hostile = "[x](http://evil) `code` " + "long " * 50
    for _ in range(2):
        tracker = Tracker(store, "registered", "demo-banks", "abc")
        before = []
        for revision, entries in enumerate([[entry()], [entry()], [entry(), entry(hostile)]]):
            tracker.publish(replace(publication(revision, entries), before=before))
            before = entries
    Tracker(store, "registered too", "demo-banks", "def").publish(publication(0, [entry()]))
    names = sorted(each.name for each in client.search_registered_models("name LIKE 'demo-banks%'"))
    assert names == ["demo-banks-bank", "demo-banks-bank (2)"]
    versions = client.search_model_versions(f"name='{names[0]}'", order_by=["version_number ASC"])
    assert [each.tags["coevo.revision"] for each in versions] == ["0", "2"]
    (run,) = found(client, "registered")
    assert {each.run_id for each in versions} == {run.info.run_id}
    last = versions[-1].description
    assert "2 entries" in last
    assert f"- admitted `{entry(hostile).id}` `[x](http://evil) 'code' long" in last
    assert len(last) < 400


def test_the_description_of_a_version_ends_where_mlflow_takes_no_more():
    many = [replace(entry(f"lesson {number} " + "x" * 100), id=f"e{number}") for number in range(200)]
    said = description(replace(publication(3, many), before=[]))
    assert len(said) < 5000
    assert said.splitlines()[0] == "Bank of revision 3: 200 entries, in `bank/r3.json`."
    left = int(said.splitlines()[-1].split()[2])
    assert len(said.splitlines()) - 2 + left == 200


def test_success_of_a_revision_is_joined_to_the_dataset_of_its_panel(store, client):
    made = publication(1)
    made.manifest.state["metrics"]["agent/success/seen-houses"] = 0.75
    Tracker(store, "joined", "demo-1", "abc").publish(made)
    (run,) = found(client, "joined")
    (model,) = client.search_logged_models([run.info.experiment_id])
    (metric,) = model.metrics
    used = {(each.dataset.name, each.dataset.digest) for each in run.inputs.dataset_inputs}
    assert (metric.dataset_name, metric.dataset_digest) in used
    assert metric.dataset_name == "joined/seen-houses"


def test_artifacts_stay_in_the_workspace(store, client):
    (run,) = found(client, "first")
    assert run.info.artifact_uri.startswith(store.artifacts)
    assert (Path(unquote(run.info.artifact_uri.removeprefix("file://"))) / "config" / "r0.json").is_file()


def test_a_finished_run_is_opened_again_and_closed_by_any_process(store, client):
    first = Tracker(store, "status", "demo-1", "abc")
    first.finish(RunStatus("finished"), 1.0)
    first.publish(publication(0))
    first.finish(RunStatus("finished"), 1.5)
    (closed,) = found(client, "status")
    assert (closed.info.status, closed.info.end_time - closed.info.start_time) == ("FINISHED", 1500)
    Tracker(store, "status", "demo-1", "abc").publish(publication(1))
    assert found(client, "status")[0].info.status == "RUNNING"
    Tracker(store, "status", "demo-1", "abc").finish(RunStatus("finished"), 2.5)
    assert found(client, "status")[0].info.status == "FINISHED"


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (RunStatus("waiting", "approval of revision 0", "revision 0 waits for approval"), "SCHEDULED"),
        (RunStatus("finished", "iteration 3 of 3", "all 3 iterations are done"), "FINISHED"),
        (RunStatus("stopped", "iteration 1 of 3", "interrupted"), "KILLED"),
        (RunStatus("failed", "iteration 2 of 3", "no room"), "FAILED"),
        (RunStatus("crashed", "warm start", "its process was killed"), "FAILED"),
        (RunStatus("new"), "SCHEDULED"),
    ],
)
def test_the_status_of_a_run_is_the_same_in_its_tags_and_the_nearest_of_mlflow(store, client, status, shown):
    experiment = f"status-{status.status}"
    tracker = Tracker(store, experiment, "demo-1", "abc")
    tracker.begin(CONFIG, RunStatus("running", "warm start"))
    (run,) = found(client, experiment)
    said = [run.data.tags[f"coevo.{name}"] for name in ("status", "stage", "reason")]
    assert (run.info.status, said) == ("RUNNING", ["running", "warm start", ""])
    tracker.publish(publication(0))
    assert found(client, experiment)[0].data.tags["coevo.stage"] == "iteration 1 of 3"
    tracker.finish(status, 12.5)
    (run,) = found(client, experiment)
    said = [run.data.tags[f"coevo.{name}"] for name in ("status", "stage", "reason", "seconds")]
    assert (run.info.status, said) == (shown, [status.status, status.stage or "", status.reason or "", "12.5"])
    assert run.info.end_time - run.info.start_time == 12500


def test_a_branch_stands_below_the_run_that_it_branched_from(store, client):
    Tracker(store, "branches", "trunk", "abc").publish(publication(0))
    made = publication(1)
    branched = replace(
        made.manifest, observed={**made.manifest.observed, "branched_from": {"run": "trunk", "revision": 0}}
    )
    Tracker(store, "branches", "twig", "def").publish(replace(made, manifest=branched))
    trunk, twig = sorted(found(client, "branches"), key=lambda run: run.info.run_name)
    assert twig.data.tags["coevo.branched_from"] == "trunk@0"
    assert twig.data.tags["mlflow.parentRunId"] == trunk.info.run_id


def test_a_server_that_is_not_there_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        uri = f"http://127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(TrackingError, match=f"^MLflow at {uri} does not take the run: ") as caught:
        Tracker(TrackingStore(uri, None, tmp_path / "lock"), "e", "r", "o").publish(publication(0))
    assert "\n" not in str(caught.value)


def test_a_locked_database_is_one_line_soon_and_takes_the_run_afterwards(tmp_path, capfd, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr("coevo.tasks.publish.mlflow.tracking_store.LOCKED", 0.1)
    store = tracking_store(tmp_path)
    tracker = Tracker(store, "locked", "demo-1", "abc")
    tracker.publish(publication(0))
    with closing(sqlite3.connect(tmp_path / "mlflow.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        started = time.monotonic()
        with pytest.raises(TrackingError, match="does not take the run: database is locked"):
            tracker.publish(publication(1))
        with pytest.raises(TrackingError, match="database is locked"):
            tracker.finish(RunStatus("finished"), 1.0)
        assert time.monotonic() - started < 30
        other.execute("ROLLBACK")
    tracker.publish(publication(1))
    tracker.finish(RunStatus("finished"), 1.0)
    from mlflow import MlflowClient

    (run,) = found(MlflowClient(store.uri), "locked")
    assert [step for step, *_ in points(MlflowClient(store.uri), run, "agent/success/train")] == [0, 1]
    assert "Traceback" not in capfd.readouterr().err
