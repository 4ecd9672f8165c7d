"""The limits of tests themselves: one that stands still is ended, with its stack, and the others run."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOOKS = """
from support import standstill
from support.standstill import pytest_timeout_set_timer

standstill.REPEAT_S = 1.5

def pytest_collection_modifyitems(items):
    standstill.allow_more_time(items)
"""
TESTS = """
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

def wait(path):
    os.mkfifo(path)
    path.open()

@pytest.fixture
def thread():
    with ThreadPoolExecutor(1) as pool:
        yield pool

def test_standing(tmp_path):
    wait(tmp_path / "pipe")

def test_waiting_for_a_thread(thread, tmp_path):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(wait, tmp_path / "pipe").result()

def test_ending_beside_a_thread(thread, tmp_path):
    thread.submit(wait, tmp_path / "pipe")

def test_others():
    pass

@pytest.mark.full
def test_long(request):
    assert request.node.get_closest_marker("timeout").args == (900,)

@pytest.mark.full
@pytest.mark.timeout(7)
def test_own(request):
    assert request.node.get_closest_marker("timeout").args == (7,)
"""


@pytest.mark.full
def test_a_test_that_stands_still_is_ended_with_its_stack(tmp_path):
    (tmp_path / "conftest.py").write_text(HOOKS)
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = full\ntimeout = 0.5\n")
    line = [sys.executable, "-m", "pytest", "-rA", "-p", "no:randomly", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(
        line,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "2 failed, 4 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("Timeout (>0.5s)") > 2
    assert done.stdout.count("path.open()") > 2


def test_a_quick_test_has_two_minutes():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["pytest"]["ini_options"]["timeout"] == 120
