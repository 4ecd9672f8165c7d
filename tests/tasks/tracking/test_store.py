"""Where MLflow keeps things, on a real database."""

import sqlite3

import pytest

from tasks.tracking.store import TrackingError, reached, tracking_store


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
