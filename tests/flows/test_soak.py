"""Kills at random moments of a whole run: whatever they hit, the run ends in the states of an undisturbed one."""

import os
import signal
import subprocess
import sys

import pytest
from support.runs import KILL_AT, ROOT, SMALL, coevo, states

from records.draws import generator, key

pytestmark = [pytest.mark.soak, pytest.mark.timeout(0)]
KILLS = int(os.environ.get("COEVO_SOAK_KILLS", "20"))
RUN = ("run", "homerules-coevo-rl", "iterations=3", "seed=5", *SMALL)


def killed_after(seconds, *arguments, workspace):
    """Start a command and kill it after some seconds; whether it was still alive."""
    command = [sys.executable, str(KILL_AT), "--", *arguments, "--workspace", str(workspace)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True
    return False


def test_random_kills_change_nothing(tmp_path):
    assert coevo(*RUN, "--name", "untouched", workspace=tmp_path).returncode == 0
    wanted, kills, number = states(tmp_path, "untouched"), 0, 0
    while kills < KILLS:
        name, number = f"killed-{number}", number + 1
        at_once = coevo(*RUN, "--name", name, workspace=tmp_path, kill="tasks.open:open_session@1")
        assert at_once.returncode == -9
        while killed_after(generator(key("soak", kills)).uniform(4, 30), "resume", name, workspace=tmp_path):
            kills += 1
            print(f"kill {kills} of {KILLS}: {name} after {len(states(tmp_path, name))} revisions", flush=True)
            if kills == KILLS:
                assert coevo("resume", name, workspace=tmp_path).returncode == 0
                break
        assert states(tmp_path, name) == wanted
    coevo("down", workspace=tmp_path)
