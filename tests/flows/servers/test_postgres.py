"""Prefect's and MLflow's servers on a real Postgres, whose password stays in the environment."""

import json

import pytest
from support.postgres import Postgres
from support.runs import coevo, revisions
from support.s3_server import BUCKET, Server
from support.scheduled import create

from coevo.flows.servers.daemon import down

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


@pytest.fixture
def databases(monkeypatch):
    postgres = Postgres()
    for name, value in postgres.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    yield postgres
    postgres.remove()


@pytest.fixture
def artifacts(tmp_path, monkeypatch):
    server = Server(tmp_path)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MLFLOW_DEFAULT_ARTIFACT_ROOT", f"s3://{BUCKET}/mlflow/")
    yield server
    server.stop()


def test_a_run_is_published_to_postgres_and_s3_and_the_password_is_stored_nowhere(databases, artifacts, tmp_path):
    root = tmp_path / "workspace"
    create(root, "first", iterations=2)
    try:
        done = coevo("resume", "first", workspace=root)
        assert done.returncode == 0, done.stderr
    finally:
        down(root)
    flows = dict(databases.execute("SELECT state_name, count(*) FROM flow_run GROUP BY 1", "prefect"))
    assert flows == {"Finished": 1}
    assert databases.execute("SELECT count(*) FROM task_run", "prefect")[0][0] > 10
    steps = databases.execute("SELECT DISTINCT step FROM metrics WHERE key = 'bank/size' ORDER BY 1", "mlflow")
    assert (steps, revisions(root, "first")) == ([(1,), (2,)], 3)
    ((location,),) = databases.execute("SELECT artifact_location FROM experiments WHERE name = 'homerules'", "mlflow")
    assert location == f"s3://{BUCKET}/mlflow/homerules"
    assert not list(root.glob("*/prefect.db")) + list(root.glob("mlflow.db*")) + list(root.glob("mlartifacts"))
    places = [root, databases.log, artifacts.log]
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("*")) if file.is_file()]
    assert [file for file in files if databases.password.encode() in file.read_bytes()] == []
    shown = json.dumps([databases.execute("SELECT parameters FROM flow_run", "prefect"), done.stdout, done.stderr])
    assert databases.password not in shown


def test_a_database_that_is_not_there_is_one_line_without_its_password(databases, tmp_path):
    root = tmp_path / "workspace"
    create(root, "first", iterations=1)
    databases.stop()
    try:
        done = coevo("resume", "first", workspace=root)
    finally:
        databases.start()
        down(root)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the prefect server did not start" in done.stderr
    assert databases.password not in done.stderr
