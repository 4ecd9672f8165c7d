"""A worker that is stopped ends soon, and nothing of it is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from support.runs import ROOT
from support.scheduled import wait_for

from coevo.flows.sessions import session_worker as worker
from coevo.lineage.workspace import Workspace

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('up', flush=True)
time.sleep(600)
"""
"""A session that waits for somebody who does not answer."""
PARENT = f"""
import signal, subprocess, sys, time
{{ignore}}
subprocess.Popen([sys.executable, '-c', {STUBBORN!r}], start_new_session=True)
time.sleep(600)
"""
MAIN = """
import sys
from coevo.flows.sessions.session_worker import supervise
sys.exit(supervise([sys.executable, '-c', sys.argv[1]], lambda: None, 1.0) != 0)
"""


@pytest.mark.parametrize("ignore", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"])
def test_a_worker_that_is_stopped_takes_a_stubborn_session_with_it(ignore):
    parent = PARENT.format(ignore=ignore)
    worker = subprocess.Popen(
        [sys.executable, "-c", MAIN, parent], cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."}
    )
    assert worker.stdout.readline() == b"up\n"
    family = psutil.Process(worker.pid).children(recursive=True)
    assert len(family) == 2
    begun = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 1
    assert time.monotonic() - begun < 30
    wait_for(lambda: not any(process.is_running() and process.status() != "zombie" for process in family), 30)


PLACES = {
    "nothing": (lambda place: None, True),
    "a folder": (lambda place: place.mkdir(), True),
    "a link to a folder": (lambda place: place.symlink_to(place.parent), True),
    "a file": (lambda place: place.touch(), False),
    "a link to a file": (lambda place: place.symlink_to(__file__), False),
    "a link to nothing": (lambda place: place.symlink_to("nothing"), False),
    "a link to itself": (lambda place: place.symlink_to(place), False),
    "a pipe": (os.mkfifo, False),
    "a folder to read": (lambda place: place.mkdir(0o500), False),
    "a folder to list": (lambda place: place.mkdir(0o600), False),
}
"""Things in the place of Prefect's folder, and whether each can be used."""


@pytest.mark.parametrize(("make", "usable"), PLACES.values(), ids=PLACES)
def test_a_place_of_prefects_that_cannot_be_used_is_not_used(tmp_path, monkeypatch, make, usable):
    monkeypatch.setattr(worker.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(worker.os, "access", lambda path, mode: path.stat().st_mode >> 6 & mode == mode)  # root may all
    make(tmp_path / "runner_storage")
    with worker.runner_storage() as variables:
        assert (variables == {}) == usable
        made = Path(variables.get("TMPDIR", tmp_path), "runner_storage", "session")
        made.mkdir(parents=True, exist_ok=True)  # as Prefect does
    assert usable or not made.parents[1].exists()


@pytest.mark.parametrize("aside", [False, True])
def test_output_of_sessions_leaves_room_for_a_document(aside):
    script = f"import sys\nfrom {worker.__name__} import supervise\n"
    script += f"supervise([sys.executable, '-c', 'print(1)'], lambda: None, aside={aside})"
    line, variables = [sys.executable, "-c", script], {**os.environ, "PYTHONPATH": "."}
    done = subprocess.run(line, cwd=ROOT, env=variables, capture_output=True, text=True, check=True, timeout=110)
    assert done.stdout == ("" if aside else "1\n")
    assert ("1" in done.stderr.split()) == aside


JUMPS = {
    -14400.0: "back by 240 min", 90000.0: "ahead by 1500 min", -61.0: "back by 1 min", 61.0: "ahead by 1 min",
    -3600.0: "back by 60 min", 3600.0: "ahead by 60 min", -86400.0 * 3650: "back by 5256000 min",
    86400.0 * 3650: "ahead by 5256000 min", 5.0: "", -59.0: "", 59.0: "", 0.0: "",
}  # fmt: skip
"""Seconds by which a clock is set, and what the worker says; NTP moves it by less."""


@pytest.mark.parametrize(("jump", "said"), JUMPS.items())
def test_a_clock_that_is_set_has_the_sessions_planned_anew_once(tmp_path, monkeypatch, capsys, jump, said):
    planned = []
    monkeypatch.setattr("coevo.flows.sessions.schedules.plan_anew", planned.append)
    looker = worker.Looker(Workspace(tmp_path), "http://127.0.0.1:1/api", restarts=False)
    before = worker._clock_offset()
    monkeypatch.setattr(worker, "_clock_offset", lambda: before + jump)
    looker.look()
    looker.look()
    assert len(planned) == bool(said)
    assert said in capsys.readouterr().out
    # Set right again, as after a wrong battery: once more.
    monkeypatch.setattr(worker, "_clock_offset", lambda: before)
    looker.look()
    looker.look()
    assert len(planned) == 2 * bool(said)
