"""One status: command line, MLflow, Prefect and the report say the same of a run, however its process ended."""

import signal
import sqlite3
import time
from subprocess import PIPE, Popen

import pytest
from support.runs import coevo, command
from support.status import listed, same_everywhere, tracked

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

BRIEF = (
    "homerules-coevo-rl", "warmstart=null", "iterations=2", "rollout.tasks=2", "rollout.group_size=2",
    "bank.admission.replays=2", "evaluation.tasks=4", "evaluation.final_panels=[]",
)  # fmt: skip


@pytest.mark.usefixtures("servers_end")
def test_a_run_says_the_same_of_itself_everywhere_at_every_stage(tmp_path):
    """Beside ``tests/lineage/test_status.py``, which has all ends: here real processes and servers say some of them.

    One that waits is in ``durability/test_durable``, one that failed in ``durability/test_kills``.
    """
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

    dead = coevo("run", *BRIEF, "--name", "dead", workspace=tmp_path, kill="coevo.tasks.commit:commit@2")
    assert dead.returncode == -signal.SIGKILL
    assert [listed(tmp_path, "dead")[name] for name in ("status", "reason")] == ["crashed", "its process was killed"]
    shown = coevo("ui", workspace=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert same_everywhere(tmp_path, "dead")["status"] == "crashed"
    assert coevo("resume", "dead", workspace=tmp_path).returncode == 0
    assert same_everywhere(tmp_path, "dead")["status"] == "finished"


def tracked_soon(directory, run):
    """Return True if MLflow has the run by now."""
    try:
        return bool(tracked(directory, run))
    except (ValueError, sqlite3.Error):
        return False
