"""Environment variables are set before there are threads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coevo.tasks.telemetry import OFF, SHORT_TIMEOUTS, switch_off

ROOT = Path(__file__).parents[2]
PUBLISHING = """
import os, threading
import numpy  # by then it is there, and so are those that it sets
from coevo.tasks.telemetry import switch_off
switch_off()
added = []
os.putenv = lambda name, _: added.append(name)
from coevo.tasks.publish.mlflow.tracking_store import package
thread = threading.Thread(target=package)
thread.start()
thread.join()
print(added)
"""
IMPORTING = """
import importlib, os, sys
class Watch:
    def find_spec(self, name, path, target=None):
        if name in ("prefect", "mlflow", "great_expectations"):
            raise SystemExit(f"{name} {os.environ.get('DO_NOT_TRACK')}")
sys.meta_path.insert(0, Watch())
importlib.import_module(sys.argv[1])
"""


@pytest.mark.parametrize(
    "module", ["coevo.tasks.stage", "coevo.flows.sessions.scheduled_session", "coevo.flows.studies.ablate"]
)
def test_a_library_that_sends_telemetry_on_import_finds_it_off(module):
    clean = {name: value for name, value in os.environ.items() if name not in {*OFF, *SHORT_TIMEOUTS}}
    line = [sys.executable, "-P", "-c", IMPORTING, module]
    done = subprocess.run(line, cwd=ROOT, env=clean, capture_output=True, text=True, check=False)
    assert done.stderr == "prefect 1\n"


def test_no_is_said_for_the_user_and_patience_is_the_user_s(monkeypatch):
    for name in OFF:
        monkeypatch.setenv(name, "as it was")
    for name in SHORT_TIMEOUTS:
        monkeypatch.setenv(name, "7")
    switch_off()
    assert {name: os.environ[name] for name in OFF} == OFF
    assert {os.environ[name] for name in SHORT_TIMEOUTS} == {"7"}


def test_the_publishing_thread_adds_nothing_to_the_environment():
    clean = {name: value for name, value in os.environ.items() if name not in {*OFF, *SHORT_TIMEOUTS}}
    done = subprocess.run(
        [sys.executable, "-c", PUBLISHING], cwd=ROOT, env=clean, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
