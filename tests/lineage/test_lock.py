"""One writer a run."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from coevo.lineage.lock import holding_for, if_free, writer_lock
from coevo.lineage.workspace import RunPaths
from coevo.utilities.errors import CoevoError

HOLDER = """
import subprocess, sys
from pathlib import Path
from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import RunPaths
with writer_lock(RunPaths(Path(sys.argv[1]))):
    child = subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL)
    print(child.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def run(directory):
    run = RunPaths(directory / "first")
    run.root.mkdir()
    return run


def test_a_second_writer_is_told_who_the_first_is(run):
    with (
        writer_lock(run),
        pytest.raises(CoevoError, match=f"run 'first' is in use by process {os.getpid()}"),
        writer_lock(run),
    ):
        pass
    with writer_lock(run):
        pass


def test_a_killed_writer_gives_the_lock_back_though_its_child_lives_on(run):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, run.root],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    child = int(holder.stdout.readline())
    try:
        with pytest.raises(CoevoError, match=f"process {holder.pid}"), writer_lock(run):
            pass
        holder.kill()
        holder.communicate()
        with writer_lock(run):
            os.kill(child, 0)
    finally:
        os.kill(child, 9)


def test_the_lock_may_be_released_by_another_thread(run):
    lock = writer_lock(run)
    lock.__enter__()
    thread = threading.Thread(target=lock.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    with writer_lock(run):
        pass


def test_an_error_inside_passes_and_releases(run):
    with pytest.raises(KeyError), writer_lock(run):
        raise KeyError
    with writer_lock(run):
        pass


def test_whoever_waits_is_told_what_for(run):
    with (
        holding_for("a scheduled night"),
        writer_lock(run),
        pytest.raises(CoevoError, match=rf"by process {os.getpid()} \(a scheduled night\): wait for it, or stop it"),
        writer_lock(run),
    ):
        pass
    with writer_lock(run), pytest.raises(CoevoError, match=f"by process {os.getpid()}: wait"), writer_lock(run):
        pass


def test_locks_are_taken_all_or_none_and_nobody_is_waited_for(run):
    other = run.root / "other.lock"
    with writer_lock(run), if_free(other, run.lock) as free:
        assert not free
    with if_free(other, run.lock) as free, pytest.raises(CoevoError, match="in use"), writer_lock(run):
        pass
    assert free
    with writer_lock(run), if_free(other) as free:
        assert free
