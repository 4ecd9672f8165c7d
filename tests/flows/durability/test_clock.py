"""A clock that is set while a run works: the history stays in order, and what was published is not doubled."""

import os

import pytest
from support import fault_at, warm
from support.kept import history
from support.runs import RUN, coevo, published, states

from coevo.lineage.workspace import Workspace

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]
DAY = 86400


def test_a_clock_that_is_set_back_and_forth_changes_nothing(untouched, workspace, no_servers_named):
    back = (f"clock:{-DAY}", "coevo.lineage.lineage:Lineage.commit@2")
    forth = (f"clock:{3 * DAY}", "coevo.lineage.lineage:Lineage.commit@3")
    line = (fault_at.__file__, *back, *forth, "--", "coevo", *RUN, "--name", "clock", "--workspace", workspace)
    done = warm.run(*line, environment=dict(os.environ), timeout=900)
    assert (done.returncode, done.stderr) == (0, "")
    assert states(workspace, "clock") == untouched
    place = Workspace(workspace)
    times = [manifest.observed["timestamp"] for manifest in history(workspace, "clock")]
    assert times[1] < times[0] < times[2]
    assert published(workspace, "clock") == [1, 2, 3]
    assert coevo("resume", "clock", workspace=workspace).returncode == 0
    assert published(workspace, "clock") == [1, 2, 3]
    assert coevo("fsck", "clock", workspace=workspace).returncode == 0
    assert [run.name for run in place.runs()][-1] == "clock"
