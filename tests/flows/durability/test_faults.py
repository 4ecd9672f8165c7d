"""Whole runs in surroundings that fail them: the run continues or ends in one line, and the states stay the same."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest
from mlflow import MlflowClient
from support import fault_at, warm
from support.disk import BALLAST, SmallDisk
from support.runs import SMALL, coevo, share, states

from coevo.tasks.publish.mlflow.tracking_store import make_database, tracking_store

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
RUN = ("run", "homerules-coevo-rl", "--name", "first", "iterations=2", "seed=5", *SMALL)
CONFIG = """
[core]
    hooksPath = {hooks}
    autocrlf = true
    fsmonitor = {hooks}/pre-commit
[commit]
    gpgSign = true
[gpg]
    program = false
[init]
    defaultBranch = trunk
    templateDir = {hooks}
[user]
    useConfigOnly = true
"""


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory):
    """A user's git that refuses everything, and a tracking server that is not there."""
    home = tmp_path_factory.mktemp("home")
    for hook in ("pre-commit", "commit-msg", "reference-transaction", "post-checkout"):
        (home / hook).write_text("#!/bin/sh\nexit 1\n")
        (home / hook).chmod(0o755)
    (home / ".gitconfig").write_text(CONFIG.format(hooks=home))
    with socket.socket() as probe, pytest.MonkeyPatch.context() as patch:
        probe.bind(("127.0.0.1", 0))
        patch.setenv("HOME", str(home))
        patch.setenv("GIT_DIR", str(home / "nowhere"))
        patch.setenv("GIT_INDEX_FILE", str(home / "index"))
        patch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{probe.getsockname()[1]}")
        yield


@pytest.fixture(scope="module")
def workspace(tmp_path_factory, warmstarts):
    directory = share(warmstarts, tmp_path_factory.mktemp("faults") / "Übung 1" / "räum e")
    yield directory
    coevo("down", workspace=directory)


@pytest.fixture(scope="module")
def bereft(workspace, surroundings):
    """A whole run there."""
    return coevo(*RUN, workspace=workspace)


def published(workspace):
    """Steps at which MLflow has the size of the bank."""
    client = MlflowClient(f"sqlite:///{workspace / 'mlflow.db'}")
    (found,) = client.search_runs([experiment.experiment_id for experiment in client.search_experiments()])
    assert found.info.status == "FINISHED"
    return [point.step for point in client.get_metric_history(found.info.run_id, "bank/size")]


def test_neither_git_nor_mlflow_nor_the_path_stops_a_run(bereft):
    assert (bereft.returncode, bereft.stderr) == (0, "")
    (begins, ends) = re.findall(r"^warning: (.*MLflow.*)$", bereft.stdout, re.MULTILINE)
    assert re.fullmatch(r"MLflow at http\S+ does not take the run: .*; the run continues and tries again .*", begins)
    assert re.fullmatch(r"3 revisions are not published: .*; `coevo resume` publishes the rest", ends)


def test_a_finished_run_s_resume_publishes_what_is_left(bereft, workspace, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    monkeypatch.delenv("GIT_DIR")
    done = coevo("resume", "first", workspace=workspace)
    assert (done.returncode, done.stderr) == (0, "")
    assert published(workspace) == [1, 2]


def on(disk, *arguments, what="full", at=None):
    """A command on a disk, to which something happens at ``at``."""
    what = what if what.startswith("die") else f"{what}:{disk.directory}"
    fault = (what, at) if at else ()
    environment = os.environ | {"COEVO_WORKSPACE": str(disk.directory)}
    line = (fault_at.__file__, *fault, "--", "coevo", *arguments)
    done = warm.run(*line, environment=environment, timeout=600, within=disk.pid)
    print(done.stdout, done.stderr)
    return done


LOCK = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked_database(disk):
    """Another process has MLflow's database in an exclusive transaction."""
    command = disk.inside(sys.executable, "-c", LOCK, disk.directory / "mlflow.db")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "locked\n"
        yield
        other.stdin.close()


def copy_warmstarts(workspace, disk):
    """Copy the complete warm starts: other processes of pytest may be making more."""
    unfinished = shutil.ignore_patterns("*.part")
    shutil.copytree(workspace / "cache/warmstarts", disk.outside / "cache/warmstarts", ignore=unfinished)


@pytest.fixture
def disk(tmp_path):
    (tmp_path / "disk").mkdir()
    with SmallDisk(tmp_path / "disk", "96m") as disk:
        yield disk
        on(disk, "down")


def test_a_full_disk_and_a_locked_database_leave_the_same_states(bereft, workspace, disk, tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    monkeypatch.delenv("GIT_DIR")
    copy_warmstarts(workspace, disk)
    # There before the disk is full, so that it is a database of MLflow's that is locked afterwards.
    make_database(tracking_store(tmp_path))
    shutil.move(tmp_path / "mlflow.db", disk.outside / "mlflow.db")
    full = on(disk, *RUN, at="coevo.models.trainer.trainer_client:Trainer.save@1")
    assert full.returncode == 2
    assert re.fullmatch(r"coevo: No space left on device: make room; what is committed is safe.*\n", full.stderr)
    disk.make_room()
    with locked_database(disk):
        locked = on(disk, "resume", "first")
    assert (locked.returncode, locked.stderr) == (0, "")
    assert len(re.findall(r"^warning: .*database is locked; the run continues", locked.stdout, re.MULTILINE)) == 1
    assert on(disk, "resume", "first").returncode == 0
    copy = shutil.copytree(disk.outside, tmp_path / "copy", ignore=shutil.ignore_patterns(BALLAST))
    assert published(copy) == [1, 2]
    assert states(copy, "first") == states(workspace, "first")


@pytest.mark.soak
def test_saves_that_the_trainer_cannot_end_leave_the_same_states(
    bereft, workspace, disk, prefect_url, tmp_path, monkeypatch
):
    monkeypatch.setenv("PREFECT_API_URL", prefect_url)
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    monkeypatch.delenv("GIT_DIR")
    copy_warmstarts(workspace, disk)
    dead = on(disk, *RUN, what="die", at="trainer:coevo.models.weights.tensor_file:_write@4")
    assert dead.returncode == 2
    assert re.fullmatch(r"coevo: the trainer died \(exit status -9\).*\n", dead.stderr)
    resumed = "resume", "first"
    part = "trainer:coevo.models.trainer.checkpoint:_part@5"
    assert on(disk, *resumed, what="die:parent", at=part).returncode == -signal.SIGKILL
    full = on(disk, *resumed, what="full", at=part)
    assert full.returncode == 2
    assert re.fullmatch(r"coevo: .*No space left on device: make room; what is committed is safe.*\n", full.stderr)
    disk.make_room()
    assert on(disk, *resumed).returncode == 0
    assert not list(disk.outside.rglob("*.part"))
    copy = shutil.copytree(disk.outside, tmp_path / "copy", ignore=shutil.ignore_patterns(BALLAST))
    assert states(copy, "first") == states(workspace, "first")


@pytest.mark.soak
def test_a_workspace_that_becomes_read_only_ends_a_run_in_one_line_and_it_goes_on(
    bereft, workspace, disk, prefect_url, tmp_path, monkeypatch
):
    monkeypatch.setenv("PREFECT_API_URL", prefect_url)
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    monkeypatch.delenv("GIT_DIR")
    copy_warmstarts(workspace, disk)
    for command, at in (
        (RUN, "coevo.models.trainer.trainer_client:Trainer.update@2"),
        (("resume", "first"), "coevo.lineage.lineage:write_manifest@1"),
    ):
        stopped = on(disk, *command, what="readonly", at=at)
        assert stopped.returncode == 2
        line = r"coevo: .*Read-only file system: make it writable.*; what is committed is safe.*\n"
        assert re.fullmatch(line, stopped.stderr)
        disk.uncover()
    assert on(disk, "resume", "first").returncode == 0
    copy = shutil.copytree(disk.outside, tmp_path / "copy")
    assert states(copy, "first") == states(workspace, "first")
