"""A run whose Prefect server is killed ends within half a minute by the clock, whatever it is doing."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import psutil
import pytest
from support import fault_at, warm
from support.runs import RUN, coevo, states
from support.scheduled import wait_for

from coevo.flows.servers.daemon import recorded

pytestmark = pytest.mark.timeout(1800)
SECONDS = 30
"""From the kill to the end of the process."""
LINE = r"coevo: the Prefect server at http://\S+ has gone: what is committed is safe, continue with `coevo resume {}`\n"


@contextmanager
def load(processes):
    """So many processes that do nothing but compute."""
    busy = [sys.executable, "-c", "while True: pass"]
    with ExitStack() as stack:
        for _ in range(processes):
            stack.callback(stack.enter_context(subprocess.Popen(busy)).kill)
        yield


@contextmanager
def stopped_in(phase, name, workspace, mark):
    """A run that has come to a phase and stays in it, as it does in one that takes long."""
    line = (f"hang:{mark}", phase, "--", "coevo", *RUN, "--name", name, "--workspace", workspace)
    with warm.running(fault_at.__file__, *line, environment=dict(os.environ)) as run:
        wait_for(lambda: mark.exists() or run.poll() is not None, 900)
        yield run


@pytest.mark.parametrize(
    ("phase", "busy"),
    [
        pytest.param("coevo.envs.homerules.homerules:HomeRules.step@300", True, id="rollout", marks=pytest.mark.soak),
        pytest.param(
            "coevo.models.trainer.trainer_client:Trainer.update@2", False, id="update", marks=pytest.mark.soak
        ),
        pytest.param("coevo.tasks.publish.publisher:Publisher.close@1", False, id="end", marks=pytest.mark.soak),
    ],
)
def test_a_dead_server_ends_a_run_in_half_a_minute(untouched, workspace, tmp_path, no_servers_named, phase, busy):
    name = phase.partition("@")[0].rpartition(".")[2]
    mark = tmp_path / "mark"
    with stopped_in(phase, name, workspace, mark) as run, load(2 * os.cpu_count() if busy else 0):
        children = psutil.Process(run.pid).children(recursive=True)
        assert children or name == "close"  # its trainer, which has ended by then
        (server,) = (server for server in recorded(workspace) if server.name == "prefect")
        os.kill(server.pid, signal.SIGKILL)
        begun = time.monotonic()
        code = run.wait(400)
        spent = time.monotonic() - begun
        said = run.said()[1]
    print(f"{phase}: {spent:.1f} s")
    assert (code, spent < SECONDS) == (2, True), (said, spent)
    assert re.fullmatch(LINE.format(name), said), said
    wait_for(lambda: not any(child.is_running() and child.status() != "zombie" for child in children), 60)
    done = coevo("resume", name, workspace=workspace)
    assert done.returncode == 0, done.stderr
    assert states(workspace, name) == untouched
