"""A module on a leash runs as without one, and ends with whoever holds the other end."""

import os
import signal
import subprocess
import sys

import psutil
import pytest
from support.runs import ROOT
from support.scheduled import wait_for

from coevo.flows.servers.leash import STOP_TIMEOUT_S

MODULE = """
import signal, sys, time

def asked(number, _):
    print(signal.Signals(number).name, flush=True)
    sys.exit(3)

signal.signal(signal.SIGTERM, asked)
signal.signal(signal.SIGINT, asked)
print(sys.argv[1:], __name__, flush=True)
time.sleep(600)
"""
HOLDER = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
child.wait()
"""


@pytest.fixture
def module(tmp_path):
    (tmp_path / "patient.py").write_text(MODULE)
    return {"cwd": ROOT, "env": {**os.environ, "PYTHONPATH": str(tmp_path)}, "stdout": subprocess.PIPE, "text": True}


LEASHED = [sys.executable, "-m", "coevo.flows.servers.leash", "patient", "--pool", "coevo"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_and_arguments_reach_the_module(module, number):
    with subprocess.Popen(LEASHED, stdin=subprocess.PIPE, **module) as process:
        assert process.stdout.readline() == "['--pool', 'coevo'] __main__\n"
        process.send_signal(number)
        assert process.stdout.readline() == f"{number.name}\n"
        assert process.wait(30) == 3


def test_the_module_is_asked_to_end_when_its_parent_is_killed(module):
    with subprocess.Popen([sys.executable, "-c", HOLDER, *LEASHED], **module) as holder:
        child = psutil.Process(int(holder.stdout.readline()))
        holder.kill()
    wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, 2 * STOP_TIMEOUT_S)
