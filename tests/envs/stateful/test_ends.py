"""Whoever is killed, whatever a worker does: nothing that it started outlives it, and no read exceeds its limit."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from support.offspring import Leavers, Parents
from support.runs import ROOT
from support.scheduled import wait_for

from coevo.envs.failures import EpisodeFailure
from coevo.records.draws import key
from coevo.utilities.errors import CoevoError

RUN = """
import sys
from contextlib import closing
from support.offspring import Parents
with closing(Parents(sys.argv[1], limits={"act_seconds": 500.0, "workers": 1})) as env:
    state, _ = env.start(env.task("one", "train"))
    (step,) = env.try_step([state], [sys.argv[2]])
    print(step, flush=True)
"""
LIMIT = 5.0
"""Seconds in which all ends after a kill."""
MORE = pytest.mark.soak
DEEDS = [
    "sleep", "compute", "stop", "child+compute", "session+sleep", "orphan+sleep", "holder+compute", "half+sleep",
    "session+orphan+holder+half+stop", "drip",
]  # fmt: skip
WORKER, GUARD, OUTER_GUARD, FORK_SERVER, RUN_ITSELF = range(5)
"""Generations above a worker, itself included."""


def logged(log):
    return [(word, int(pid)) for word, pid in map(str.split, log.read_text().splitlines())] if log.exists() else []


def busy(tmp_path, deed):
    """A run whose worker does something, all processes below the run, and the worker's line of ancestors."""
    log = tmp_path / "log"
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT}/tests"}
    run = subprocess.Popen([sys.executable, "-c", RUN, log, deed], env=environment, stdout=subprocess.PIPE, text=True)
    wait_for(lambda: any(word == "busy" for word, _ in logged(log)), 60)
    worker = psutil.Process(next(pid for word, pid in logged(log) if word == "busy"))
    line = [worker, *worker.parents()]
    assert line[RUN_ITSELF].pid == run.pid
    below = {*psutil.Process(run.pid).children(recursive=True), *(psutil.Process(pid) for _, pid in logged(log))}
    return run, below, line


def left_after(processes, seconds=LIMIT):
    left = psutil.wait_procs(processes, timeout=seconds)[1]
    return [each for each in left if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("deed", "generations"),
    [pytest.param(deed, (RUN_ITSELF,), marks=MORE if number % 3 else ()) for number, deed in enumerate(DEEDS)]
    + [
        pytest.param(deed, (kin, RUN_ITSELF), marks=MORE if deed == DEEDS[-1] else ())
        for deed in DEEDS[-2:]
        for kin in (GUARD, OUTER_GUARD, FORK_SERVER)
    ],
)
def test_all_ends_with_a_killed_run(tmp_path, deed, generations):
    run, below, line = busy(tmp_path, deed)
    for each in generations:
        line[each].kill()
    assert not left_after(below)
    run.communicate()


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("deed", [pytest.param(deed, marks=MORE if n else ()) for n, deed in enumerate(DEEDS[4:-1:2])])
@pytest.mark.parametrize("victim", [WORKER, GUARD, OUTER_GUARD], ids=["worker", "guard", "outer guard"])
def test_all_below_a_killed_worker_or_guard_ends_and_the_run_goes_on(tmp_path, deed, victim):
    run, below, line = busy(tmp_path, deed)
    line[victim].kill()
    began = time.monotonic()
    said, _ = run.communicate(timeout=60)
    assert said.startswith("crash: its process ended with exit code -9")
    assert not left_after(below - set(line[FORK_SERVER:]), max(0.0, began + LIMIT - time.monotonic()))


@pytest.mark.timeout(300)
def test_the_daemon_of_a_worker_ends_with_a_killed_run(tmp_path):
    run, below, line = busy(tmp_path, "session+orphan+sleep")
    line[RUN_ITSELF].kill()
    assert not left_after(below)
    run.communicate()


LATE = [
    pytest.param("holder+half+compute", id="half an answer, and a child with the connection"),
    pytest.param("half+sleep", id="half an answer, then silence", marks=pytest.mark.full),
    pytest.param("drip", id="a byte from time to time", marks=pytest.mark.full),
    pytest.param("half+stop", id="stopped in an answer", marks=pytest.mark.full),
]
DYING = [
    pytest.param("holder+half+die", id="in an answer, and a child has the connection"),
    *(pytest.param(deed, marks=pytest.mark.full) for deed in ("half+die", "holder+die", "orphan+half+die")),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("deed", LATE)
def test_no_answer_is_waited_for_beyond_its_limit(tmp_path, deed):
    log = tmp_path / "log"
    with closing(Parents(str(log), limits={"act_seconds": 1.0, "workers": 1})) as env:
        state, _ = env.start(env.task("one", "train"))
        began = time.monotonic()
        assert env.try_step([state], [deed]) == [EpisodeFailure("timeout", "no answer in 1 s")]
        assert time.monotonic() - began < 40.0
        assert not left_after([psutil.Process(pid) for _, pid in logged(log) if psutil.pid_exists(pid)])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("deed", DYING)
def test_a_worker_that_dies_is_a_crash_at_once(tmp_path, deed):
    with closing(Parents(str(tmp_path / "log"), limits={"act_seconds": 50.0, "workers": 1})) as env:
        state, _ = env.start(env.task("one", "train"))
        began = time.monotonic()
        assert env.try_step([state], [deed]) == [EpisodeFailure("crash", "its process ended with exit code -9")]
        assert time.monotonic() - began < 40.0
        assert env.start(env.task("two", "train"))[1] == "total 0"


@pytest.mark.full
@pytest.mark.timeout(300)
def test_a_fork_server_that_was_killed_is_replaced(tmp_path):
    log = tmp_path / "log"
    with closing(Parents(str(log), limits={"act_seconds": 20.0, "workers": 1})) as env:
        state, _ = env.start(env.task("one", "train"))
        worker = psutil.Process(logged(log)[0][1])
        server = worker.parents()[2]
        server.kill()
        wait_for(lambda: server.status() == psutil.STATUS_ZOMBIE, 60)
        (step,) = env.try_step([state], ["1"])  # the worker lives on
        assert step.feedback == "added 1"
        assert isinstance(env.try_step([step.state], ["die"])[0], EpisodeFailure)
        assert env.start(env.task("two", "train"))[1] == "total 0"


@pytest.mark.timeout(300)
def test_a_stopped_worker_with_a_long_request_exceeds_its_limit(tmp_path):
    log = tmp_path / "log"
    with closing(Parents(str(log), limits={"act_seconds": 1.0, "workers": 1})) as env:
        state, _ = env.start(env.task("one", "train"))
        os.kill(logged(log)[0][1], signal.SIGSTOP)
        assert env.try_step([state], ["x" * 1_000_000]) == [EpisodeFailure("timeout", "no answer in 1 s")]


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("deed", "workers"),
    [
        ("sleep", 1), ("compute", 2), ("stop", 6), ("deaf+sleep", 6), ("holder+sleep", 2), ("session+deaf+compute", 2),
        ("orphan", 6), ("fail", 1), ("die", 2),
    ],
)  # fmt: skip
def test_workers_that_do_not_close_end_within_one_limit_with_all_that_they_started(tmp_path, deed, workers):
    log = tmp_path / "log"
    env = Leavers(str(log), limits={"act_seconds": 20.0, "workers": workers})
    states = [state for state, _ in env.try_start(env.sample(workers, key("leavers")))]
    assert not any(isinstance(step, EpisodeFailure) for step in env.try_step(states, [deed] * workers))
    opened = {psutil.Process(pid) for _, pid in logged(log)}
    assert len(opened) == workers
    began = time.monotonic()
    env.close()
    assert time.monotonic() - began < LIMIT + 10.0
    started = {psutil.Process(pid) for _, pid in logged(log) if psutil.pid_exists(pid)}
    assert left_after(opened | started) == []


@pytest.fixture
def folder_of():
    """Makes a folder whose path has so many bytes."""
    with tempfile.TemporaryDirectory() as base:

        def make(length, letter="x"):
            rest, wide = length - len(os.fsencode(base)) - 1, len(letter.encode())
            folder = Path(base, letter * (rest // wide) + "x" * (rest % wide))
            folder.mkdir()
            return folder

        yield make


@pytest.mark.parametrize(("length", "letter"), [(71, "x"), (80, "x"), (107, "x"), (108, "x"), (200, "x"), (71, "ü")])
def test_a_folder_too_long_for_sockets_is_named(tmp_path, monkeypatch, folder_of, length, letter):
    folder = folder_of(length, letter)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    said = f"TMPDIR={folder} has {length} bytes, and the sockets of worker processes there may have 70: "
    with closing(Parents(str(tmp_path / "log"))) as env, pytest.raises(CoevoError, match=re.escape(said)):
        env.start(env.task("one", "train"))


@pytest.mark.full
@pytest.mark.parametrize("folder", [(60, "x"), (70, "x"), (70, "ü"), None], ids=str)
def test_a_folder_short_enough_for_sockets_is_used(tmp_path, folder_of, folder):
    named = str(tmp_path / "missing") if folder is None else str(folder_of(*folder))
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT}/tests", "TMPDIR": named}
    line = [sys.executable, "-c", RUN, tmp_path / "log", "1"]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=110, check=True)
    assert "added 1" in done.stdout
