"""MLflow's artifacts in a workspace that was moved or copied, on a real database."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient
from support.batches import entry
from support.fsck import fingerprint
from support.publications import publication

from coevo.tasks.publish.mlflow.tracker import Tracker
from coevo.tasks.publish.mlflow.tracking_store import TrackingStore, tracking_store

pytestmark = pytest.mark.full

PUBLISH = """
import sys
from dataclasses import replace
from pathlib import Path
sys.path[:0] = [".", "tests"]
from support.batches import entry, episode
from support.publications import publication
from coevo.tasks.publish.mlflow.tracking_store import tracking_store
from coevo.tasks.publish.mlflow.tracker import Tracker
made = replace(publication(int(sys.argv[2]), [entry(sys.argv[2])]), episodes=[episode(int(sys.argv[2]))])
Tracker(tracking_store(Path(sys.argv[1])), "steps", "demo-1", "abc").publish(made)
"""


def publish(root, revision):
    """In a process of its own: within one MLflow remembers where a run's artifacts are."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW")}
    subprocess.run([sys.executable, "-c", PUBLISH, root, str(revision)], env=environment, check=True)
    return tracking_store(root)


def places(store):
    """All that MLflow says of where things are."""
    client = MlflowClient(store.uri)
    experiment = client.get_experiment_by_name("steps")
    ids = [experiment.experiment_id]
    (run,) = client.search_runs(ids)
    (version,) = client.search_model_versions("name='agent'")
    models = [model.artifact_location for model in client.search_logged_models(ids)]
    traces = [trace.info.tags["mlflow.artifactLocation"] for trace in client.search_traces(locations=ids)]
    source = client.get_model_version_download_uri("agent", "1")
    return [experiment.artifact_location, run.info.artifact_uri, version.source, source, *models, *traces]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A workspace with a revision that is published, and a model that is registered."""
    root = tmp_path_factory.mktemp("moved") / "wörk space"
    root.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        store = publish(root, 0)
        client = MlflowClient(store.uri)
        (model,) = client.search_logged_models([client.get_experiment_by_name("steps").experiment_id])
        client.create_registered_model("agent")
        client.create_model_version("agent", model.artifact_location)
        yield root


def test_a_copy_writes_nothing_into_the_original(made, tmp_path):
    shutil.copytree(made, tmp_path / "copy")
    before = fingerprint(made)
    store = publish(tmp_path / "copy", 1)
    assert fingerprint(made) == before
    found = places(store)
    assert len(found) == 8
    assert all(place.startswith(store.artifacts + "/steps") for place in found)
    tables = Path(tmp_path / "copy" / "mlartifacts").rglob("bank/r*.json")
    assert {path.name for path in tables} == {"r0.json", "r1.json"}


def test_where_a_workspace_was_nothing_comes_up_again(made, tmp_path):
    shutil.copytree(made, tmp_path / "first")
    publish(tmp_path / "first", 1)
    (tmp_path / "first").rename(tmp_path / "second")
    publish(tmp_path / "second", 2)
    assert [path.name for path in tmp_path.iterdir()] == ["second"]


def test_artifacts_of_another_workspace_that_publishes_here_stay_there(made, tmp_path):
    here = tracking_store(shutil.copytree(made, tmp_path / "here"))
    (tmp_path / "there").mkdir()
    there = TrackingStore(here.uri, (tmp_path / "there" / "mlartifacts").as_uri(), tmp_path / "there" / "mlflow.lock")
    Tracker(there, "theirs", "demo-2", "abc").publish(publication(0, [entry()]))
    publish(tmp_path / "here", 1)
    location = MlflowClient(here.uri).get_experiment_by_name("theirs").artifact_location
    assert location == f"{there.artifacts}/theirs"
    assert MlflowClient(here.uri).get_experiment_by_name("steps").artifact_location == f"{here.artifacts}/steps"
