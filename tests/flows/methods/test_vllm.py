"""A whole run whose episodes real vLLM generates."""

import os
import subprocess
import time

import psutil
import pytest
from support.families import command_of, kill_all
from support.runs import ROOT, SMALL, command, revisions, states

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
RUN = ("run", "homerules-coevo-rl", "--name", "first", "iterations=1", "seed=5", *SMALL)
BRIEF = ("warmstart.steps=20", "warmstart.probe_every=20", "update.advantage.drop_zero_variance=false")
VLLM = "rollout.engine.type=vllm"


def server_of(run):
    """The processes of the vLLM server that a run has started; none while any child of it is ending."""
    try:
        guards = [child for child in run.children() if any("process_guard.py" in part for part in command_of(child))]
        return [process for guard in guards for process in guard.children(recursive=True)]
    except psutil.Error:
        return []


def test_a_run_whose_server_is_killed_goes_on_with_another(tmp_path, prefect_url):
    environment = {**os.environ, "PREFECT_API_URL": prefect_url}
    run = psutil.Popen(
        command(*RUN, *BRIEF, VLLM, workspace=tmp_path),
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    killed = []
    while run.poll() is None and not killed:
        time.sleep(0.1)
        killed = server_of(run) if revisions(tmp_path, "first") else []
    kill_all(killed)
    started = []
    while run.poll() is None:
        started = server_of(run) or started
        time.sleep(0.5)
    said = run.communicate()[0]
    assert run.returncode == 0, said
    assert killed
    assert started
    assert not psutil.wait_procs([*killed, *started], timeout=20)[1]
    first, last = states(tmp_path, "first")
    assert (first["iteration"], last["iteration"]) == (0, 1)
    assert last["metrics"]["policy/update/mismatch_tokens"] > 0
    assert last["metrics"]["policy/update/mismatch_max"] < 1e-5
    log = (tmp_path / "runs" / "first" / "engine" / "server-0.log").read_text()
    assert log.count("Application startup complete") == 2
    assert last["config"]["rollout"]["engine"]["type"] == "vllm"
