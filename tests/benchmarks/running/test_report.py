"""The report's benchmark on a short history: real stores, the real command."""

import pytest

from benchmarks.running import report
from coevo.lineage.workspace import Workspace


@pytest.mark.full
def test_time_and_size_of_a_short_history(tmp_path):
    found = report.measure(Workspace(tmp_path), 8, 16)
    assert (found["revisions"], found["episodes"]) == (8, 8 * 16)
    assert 0 < found["bytes"] < report.TARGET_BYTES * 8 / report.REVISIONS
    assert 0 < found["cpu_seconds"] < report.TARGET_SECONDS
