"""Where MLflow keeps things, on a real database."""

import os
import sqlite3
import subprocess
import sys

import pytest

from coevo.tasks.publish.mlflow import tracking_store as stores
from coevo.tasks.publish.mlflow.tracking_store import (
    TrackingError,
    TrackingStore,
    reached,
    tracking_store,
    without_login,
)


@pytest.fixture(autouse=True)
def made_by_mlflow(monkeypatch):
    """No copies of other databases, see ``support.migrated``."""
    monkeypatch.setattr(stores, "make_database", stores.make_database.__wrapped__)


def test_a_database_that_was_not_finished_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    store = tracking_store(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("mlflow.store.db.utils._upgrade_db", full)
        with pytest.raises(TrackingError, match="database or disk is full"), reached(store, "does not answer"):
            raise AssertionError("it is not there")
    assert not (tmp_path / "mlflow.db").exists()
    with reached(store, "does not answer") as registry:
        assert registry.search_registered_models() == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mlflow.db", "mlflow.lock"]


def full(engine):
    """The disk is full once the first tables are there."""
    raise sqlite3.OperationalError("database or disk is full")


def test_the_database_is_in_the_workspace_whatever_its_path_holds(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    name = "a #1 %3f%20b"
    (tmp_path / name).mkdir()
    with reached(tracking_store(tmp_path / name), "does not answer") as registry:
        registry.create_experiment("one")
    assert (tmp_path / name / "mlflow.db").stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("uri", ["http://user:swordfish@h:9", "postgresql://swordfish@h/db"])
def test_the_login_of_a_uri_is_never_told(uri):
    said = without_login(f"MLflow at {uri} refuses: GET {uri}/api failed", uri)
    assert "swordfish" not in said
    assert uri.split("//")[0] + "//h" in said


def test_a_uri_without_a_login_is_told_as_it_is():
    said = "MLflow at sqlite:///a/b.db refuses"
    assert without_login(said, "sqlite:///a/b.db") == said


def test_the_environment_variable_wins(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://example.org")
    assert tracking_store(tmp_path) == TrackingStore("http://example.org", None, tmp_path / "mlflow.lock")


PUBLISH = """
import sys
from pathlib import Path
sys.path[:0] = [".", "tests"]
from support.publications import publication
from coevo.tasks.publish.mlflow.tracking_store import tracking_store
from coevo.tasks.publish.mlflow.tracker import Tracker
Tracker(tracking_store(Path(sys.argv[1])), "e", sys.argv[2], "o").publish(publication(0))
"""


@pytest.mark.full
def test_two_processes_make_the_database_together_and_quietly(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW")}
    starts = [
        subprocess.Popen(
            [sys.executable, "-c", PUBLISH, tmp_path, run],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        for run in ("one", "two")
    ]
    assert [start.communicate(timeout=400)[0] for start in starts] == [b"", b""]
    assert [start.returncode for start in starts] == [0, 0]
    from mlflow import MlflowClient

    client = MlflowClient(tracking_store(tmp_path).uri)
    runs = client.search_runs([client.get_experiment_by_name("e").experiment_id])
    assert {run.data.tags["coevo.run"] for run in runs} == {"one", "two"}
