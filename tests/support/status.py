"""Status and seconds of a run, as the command line, MLflow, Prefect and the report say them."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.runs import coevo

MLFLOW = {
    "finished": "FINISHED",
    "stopped": "KILLED",
    "waiting": "SCHEDULED",
    "new": "SCHEDULED",
    "failed": "FAILED",
    "crashed": "FAILED",
}


def listed(directory, run):
    """Row of ``coevo runs --json``."""
    done = coevo("runs", "--json", workspace=directory)
    return next(row for row in json.loads(done.stdout) if row["run"] == run)


def tracked(directory, run):
    """Status of the MLflow run, its duration in seconds, and its tags."""
    with closing(sqlite3.connect(directory / "mlflow.db")) as database:
        (found,) = database.execute(
            "SELECT run_uuid, status, end_time - start_time FROM runs WHERE name = ?", (run,)
        ).fetchall()
        tags = dict(database.execute("SELECT key, value FROM tags WHERE run_uuid = ?", found[:1]))
    return found[1], None if found[2] is None else found[2] / 1000, tags


def flow_run(directory, run):
    """Name and message of the last state of the latest flow run."""
    (path,) = directory.rglob("prefect.db")
    query = """SELECT f.state_name, s.message FROM flow_run f JOIN flow_run_state s ON s.id = f.state_id
        WHERE f.name = ? ORDER BY f.start_time DESC LIMIT 1"""
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query, (run,)).fetchone()


def same_everywhere(directory, run, of_prefect=True):
    """Check that all say the same; returns the row of the command line."""
    row = listed(directory, run)
    status, seconds, tags = tracked(directory, run)
    assert [tags[f"coevo.{name}"] for name in ("status", "stage", "reason")] == [
        row[name] or "" for name in ("status", "stage", "reason")
    ]
    assert status == MLFLOW[row["status"]]
    assert seconds == pytest.approx(row["seconds"] or 0.0, abs=0.01)
    if of_prefect:
        name, message = flow_run(directory, run)
        assert name == row["status"].capitalize()
        if row["status"] == "failed":  # Prefect's own words around the error
            assert message.endswith(row["reason"])
        elif row["status"] != "crashed":
            assert message.startswith(f"{row['status']}, {row['stage']}, {row['reason']}; {row['seconds'] or 0:,.0f} s")
    if row["revision"] is not None:
        report = coevo("report", run, "--json", workspace=directory)
        page = Path(json.loads(report.stdout)["file"]).read_text(encoding="utf-8")
        log = coevo("log", run, workspace=directory).stdout
        assert f"{row['status']}, {row['stage']}" in page
        time = f"{row['seconds'] or 0:,.0f} s"
        assert f">{time}" in page and f"Time: {time}" in log
    return row
