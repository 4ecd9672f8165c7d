"""The report's benchmark on a short history: real stores, the real command."""

import os
import subprocess
import sys

import pytest

from benchmarks.running import report_time
from coevo.lineage.workspace import Workspace


@pytest.mark.full
def test_time_and_size_of_a_short_history(tmp_path):
    found = report_time.measure(Workspace(tmp_path), 8, 16)
    assert (found["revisions"], found["episodes"]) == (8, 8 * 16)
    assert 0 < found["bytes"] < report_time.TARGET_BYTES * 8 / report_time.REVISIONS
    assert 0 < found["cpu_seconds"] < 2 * import_seconds()  # 1.3 times, most of it the import itself


def import_seconds():
    """Seconds of processor time that Python takes to import LanceDB, on this machine at present."""
    before = os.times()
    subprocess.run([sys.executable, "-P", "-c", "import lancedb"], check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
