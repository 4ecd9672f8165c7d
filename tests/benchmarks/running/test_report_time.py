"""The report's benchmark on a short history: real stores, the real command."""

import pytest

from benchmarks.running import report_time
from coevo.lineage.workspace import Workspace


@pytest.mark.full
def test_time_and_size_of_a_short_history(tmp_path):
    found = report_time.measure(Workspace(tmp_path), 8, 16)
    assert (found["revisions"], found["episodes"]) == (8, 8 * 16)
    assert 0 < found["bytes"] < report_time.TARGET_BYTES * 8 / report_time.REVISIONS
    assert found["cpu_seconds"] > 0
