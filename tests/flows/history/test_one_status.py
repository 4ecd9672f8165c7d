"""One status: command line, MLflow, Prefect and the report say the same of a run, however its process ended."""

import json
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from support.runs import coevo, command

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

BRIEF = (
    "homerules-coevo-rl", "warmstart=null", "iterations=2", "rollout.tasks=2", "rollout.group_size=2",
    "bank.admission.replays=2", "evaluation.tasks=4", "evaluation.final_panels=[]",
)  # fmt: skip
MLFLOW = {
    "finished": "FINISHED",
    "stopped": "KILLED",
    "waiting": "SCHEDULED",
    "new": "SCHEDULED",
    "failed": "FAILED",
    "crashed": "FAILED",
}


def listed(place, run):
    """Row of ``coevo runs --json``."""
    done = coevo("runs", "--json", workspace=place)
    return next(row for row in json.loads(done.stdout) if row["run"] == run)


def tracked(place, run):
    """Status of the MLflow run, its duration in seconds, and its tags."""
    with closing(sqlite3.connect(place / "mlflow.db")) as database:
        (found,) = database.execute(
            "SELECT run_uuid, status, end_time - start_time FROM runs WHERE name = ?", (run,)
        ).fetchall()
        tags = dict(database.execute("SELECT key, value FROM tags WHERE run_uuid = ?", found[:1]))
    return found[1], None if found[2] is None else found[2] / 1000, tags


def flow_run(place, run):
    """Name and message of the last state of the latest flow run."""
    (path,) = place.rglob("prefect.db")
    query = """SELECT f.state_name, s.message FROM flow_run f JOIN flow_run_state s ON s.id = f.state_id
        WHERE f.name = ? ORDER BY f.start_time DESC LIMIT 1"""
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query, (run,)).fetchone()


def same_everywhere(place, run, of_prefect=True):
    """Check that all say the same; returns the row of the command line."""
    row = listed(place, run)
    status, seconds, tags = tracked(place, run)
    assert [tags[f"coevo.{name}"] for name in ("status", "stage", "reason")] == [
        row[name] or "" for name in ("status", "stage", "reason")
    ]
    assert status == MLFLOW[row["status"]]
    assert seconds == pytest.approx(row["seconds"] or 0.0, abs=0.01)
    if of_prefect:
        name, message = flow_run(place, run)
        assert name == row["status"].capitalize()
        if row["status"] != "crashed":
            assert message.startswith(f"{row['status']}, {row['stage']}, {row['reason']}; {row['seconds'] or 0:,.0f} s")
    if row["revision"] is not None:
        report = coevo("report", run, "--json", workspace=place)
        page = Path(json.loads(report.stdout)["file"]).read_text(encoding="utf-8")
        assert f"{row['status']}, {row['stage']}" in page
    return row


def test_a_run_says_the_same_of_itself_everywhere_at_every_stage(tmp_path):
    """Beside ``tests/lineage/test_status.py``, which has all ends: here real processes and servers say some of them."""
    warm = [*BRIEF[:1], *BRIEF[2:], "warmstart.steps=100000", "warmstart.probe_every=100000"]
    with Popen(command("run", *warm, "--name", "warming", workspace=tmp_path), stdout=PIPE, stderr=PIPE) as process:
        for _ in range(600):
            if (tmp_path / "runs" / "warming" / "status.json").exists() and tracked_soon(tmp_path, "warming"):
                break
            time.sleep(0.2)
        row, (status, _, tags) = listed(tmp_path, "warming"), tracked(tmp_path, "warming")
        assert (row["status"], row["stage"], status) == ("running", "warm start", "RUNNING")
        assert (tags["coevo.status"], tags["coevo.stage"]) == ("running", "warm start")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    row = same_everywhere(tmp_path, "warming")
    assert (row["status"], row["stage"], row["reason"]) == ("stopped", "warm start", "interrupted")

    done = coevo("run", *BRIEF, "--name", "whole", workspace=tmp_path)
    assert done.returncode == 0, done.stderr
    assert same_everywhere(tmp_path, "whole")["status"] == "finished"

    done = coevo("branch", "whole@1", "twig", "rollout.tasks=3", workspace=tmp_path)
    assert done.returncode == 0, done.stderr
    row = same_everywhere(tmp_path, "twig", of_prefect=False)
    assert (row["status"], row["parent"], row["reason"]) == ("new", "whole@1", "branched from whole@1")
    tags = tracked(tmp_path, "twig")[2]
    assert tags["coevo.branched_from"] == "whole@1" and tags["mlflow.parentRunId"]

    done = coevo("rollback", "whole", "--to", "1", workspace=tmp_path)
    assert done.returncode == 0, done.stderr
    row = same_everywhere(tmp_path, "whole", of_prefect=False)
    assert (row["status"], row["reason"]) == ("stopped", "rolled back to revision 1")

    dead = coevo("run", *BRIEF, "--name", "dead", workspace=tmp_path, kill="coevo.tasks.commit.commit:commit@2")
    assert dead.returncode == -signal.SIGKILL
    assert [listed(tmp_path, "dead")[name] for name in ("status", "reason")] == ["crashed", "its process was killed"]
    shown = coevo("ui", workspace=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert same_everywhere(tmp_path, "dead")["status"] == "crashed"
    assert coevo("resume", "dead", workspace=tmp_path).returncode == 0
    assert same_everywhere(tmp_path, "dead")["status"] == "finished"


def tracked_soon(place, run):
    """Return True if MLflow has the run by now."""
    try:
        return bool(tracked(place, run))
    except (ValueError, sqlite3.Error):
        return False
