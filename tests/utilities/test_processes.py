"""Start, wait and end of a process, tried with Python itself."""

import os
import signal
import sys
import time

import psutil
import pytest

from coevo.utilities import processes
from coevo.utilities.processes import Launch, NotReadyError, ServerProcess, Starting, end_group, wait, wait_ready

STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("ready", flush=True)
time.sleep(600)
"""

POLITE = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), sys.exit(5)))
print("ready", flush=True)
time.sleep(600)
"""


def started(code, tmp_path, **options):
    return ServerProcess(Launch([sys.executable, "-c", code], os.environ, tmp_path / "log", **options))


def test_a_process_that_ignores_sigterm_ends_with_its_children(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "STOP_TIMEOUT_S", 0.3)
    process = started(STUBBORN, tmp_path)
    assert wait_ready(lambda: "ready" in (tmp_path / "log").read_text(), process.runs, 60)
    family = psutil.Process(process.pid).children(recursive=True)
    assert family
    process.stop()
    assert not process.runs()
    assert not psutil.wait_procs(family, timeout=20)[1]


def test_a_process_has_time_to_end_by_itself(tmp_path):
    process = started(POLITE, tmp_path)
    assert wait_ready(lambda: "ready" in (tmp_path / "log").read_text(), process.runs, 60)
    process.stop()
    assert process.status() == 5


def test_a_group_whose_leader_is_another_by_now_is_left_alone(tmp_path):
    process = started("import time; time.sleep(600)", tmp_path)
    end_group(process.pid, lambda: False)
    assert process.runs()
    process.kill()
    assert process.status() == -signal.SIGKILL


def test_a_leash_ends_a_process_that_reads_it(tmp_path):
    process = started("import sys; sys.stdin.read(); sys.exit(3)", tmp_path, leash=True)
    assert process.runs()
    process.stop()
    assert process.status() == 3


def test_the_wait_ends_with_the_process_or_the_time(tmp_path):
    since = time.monotonic()
    assert not wait_ready(lambda: False, lambda: False, 60)
    assert not wait_ready(lambda: False, lambda: True, 0)
    assert wait_ready(lambda: True, lambda: False, 0)
    wait(lambda: False, 0)
    assert time.monotonic() - since < 30


@pytest.mark.parametrize(
    ("limit", "says"),
    [("", "in 0 s and was stopped: see "), ("a.limit", "in a.limit=0 s and was stopped: raise the limit, or see ")],
)
def test_a_server_that_is_late_is_stopped_and_its_limit_named_where_there_is_one(tmp_path, limit, says):
    process = started("import sys; sys.stdin.read()", tmp_path, leash=True)
    with pytest.raises(NotReadyError, match=f"was not ready {says}"):
        Starting(process, tmp_path / "log", limit=limit).wait(lambda: False, 0)
    assert not process.runs()


@pytest.mark.parametrize("waits", [wait, lambda done, seconds: wait_ready(done, lambda: True, seconds)])
def test_the_wait_looks_every_tenth_of_a_second_until_it_is_over(waits, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(processes.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(processes.time, "sleep", lambda seconds: now.append(now.pop() + seconds))
    looks = iter([False, False, True])
    waits(lambda: next(looks), 60)
    assert (list(looks), now[0]) == ([], pytest.approx(100.2))
    waits(lambda: False, 0.35)
    assert now[0] == pytest.approx(100.6)


@pytest.mark.parametrize(("options", "kept"), [({"append": True}, "before\nafter\n"), ({}, "after\n")])
def test_a_log_is_kept_or_replaced(tmp_path, options, kept):
    (tmp_path / "log").write_text("before\n")
    assert started("print('after')", tmp_path, **options).status() == 0
    assert (tmp_path / "log").read_text() == kept
