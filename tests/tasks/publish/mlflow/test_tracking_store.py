"""Where MLflow keeps things, on a real database."""

import sqlite3

import pytest

from coevo.tasks.publish.mlflow import tracking_store as stores
from coevo.tasks.publish.mlflow.tracking_store import TrackingError, reached, tracking_store


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
