"""A flow run whose process is killed is marked Crashed by the server alone: nobody has to come by and look."""

import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings
from support.prefect_client import client_of
from support.runs import ROOT
from support.scheduled import wait_for

from coevo.flows.servers.end_state import ensure_crash_detection

NIGHT = """
import sys, time
from pathlib import Path
from coevo.flows.servers.servers import use_prefect
use_prefect(Path(sys.argv[1]))
from prefect import flow, runtime

@flow(name="session")
def session():
    time.sleep(5)  # in which its first heartbeat reaches the server
    print(runtime.flow_run.id, flush=True)
    time.sleep(600)

session()
"""


@pytest.mark.full
def test_a_session_whose_process_was_killed_is_marked_crashed(prefect_workspace, prefect_url):
    with temporary_settings({PREFECT_API_URL: prefect_url}), client_of(prefect_url) as client:
        automation = ensure_crash_detection("test of dead runs", timedelta(seconds=10))
        try:
            assert ensure_crash_detection("test of dead runs", timedelta(seconds=10)) == automation
            command = [sys.executable, "-c", NIGHT, str(prefect_workspace)]
            with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
                run = process.stdout.readline().strip()
                assert client.read_flow_run(run).state.name == "Running"
                os.kill(process.pid, signal.SIGKILL)
            found = wait_for(lambda: (state := client.read_flow_run(run).state).name == "Crashed" and state, 200)
            assert "its heartbeats stopped" in found.message
        finally:
            client.delete_automation(automation)
