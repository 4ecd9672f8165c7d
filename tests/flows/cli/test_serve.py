"""Servers that are named are shown, those of the workspace are started once and stopped."""

import json
import re
import shutil

import pytest

from coevo.tasks.publish.mlflow.experiment import experiment_id
from coevo.tasks.publish.mlflow.tracking_store import check_database, client, tracking_store

LINK = r"/coevo/open/\S{40,}"


@pytest.mark.full
def test_servers_that_the_environment_names_are_shown_and_left_alone(coevo, tmp_path, monkeypatch, servers_end):
    monkeypatch.setenv("PREFECT_API_URL", "http://prefect.example:4200/api")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow.example:5000")
    result = coevo("ui", "--workspace", tmp_path / "workspace")
    *shown, live = re.findall(r"http\S+", result.out)
    assert shown == ["http://prefect.example:4200", "http://mlflow.example:5000"]
    assert live.startswith("http://127.0.0.1:")
    assert coevo("down", "--workspace", tmp_path / "workspace").out == "Stopped watch.\n"


@pytest.mark.full
def test_started_servers_answer_are_used_again_and_stop_and_a_broken_run_is_a_line(coevo, copied, monkeypatch):
    for name in ("PREFECT_API_URL", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    shutil.rmtree(copied / "runs" / "other" / "lineage" / ".git")
    store = tracking_store(copied)
    check_database(store)
    shown = experiment_id(client(store), store, "homerules")
    try:
        first = coevo("ui")
        assert (first.code, first.err) == (0, "")
        said = [line for line in first.out.splitlines() if line.startswith("other: ")]
        assert said == [line for line in coevo("runs").out.splitlines() if line.startswith("other: ")]
        assert len(re.findall(r"http://127.0.0.1:\d+", first.out)) == 3
        assert f"/#/experiments/{shown}/runs?viewStateShareKey=coevo\n" in first.out
        again = coevo("ui")
        assert re.sub(LINK, "/", again.out) == re.sub(LINK, "/", first.out)
        assert len(set(re.findall(LINK, first.out + again.out))) == 6  # each opens once
        servers = [row for row in json.loads(coevo("doctor", "--json").out) if row["check"] == "servers"]
        assert [row["status"] for row in servers] == ["ok", "ok", "ok"]
    finally:
        stopped = coevo("down")
    assert "prefect" in stopped.out
    assert "mlflow" in stopped.out
