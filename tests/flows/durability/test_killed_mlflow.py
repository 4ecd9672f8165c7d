"""MLflow's server is killed under a run that publishes to it: the run continues, and nothing is published twice."""

import os
import re

import pytest
from support import fault_at, warm
from support.runs import RUN, coevo, published, states

from coevo.flows.servers.daemon import recorded
from coevo.flows.servers.servers import ensure_mlflow_ui

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


def test_a_killed_mlflow_server_is_caught_up_with(untouched, workspace, no_servers_named):
    url = ensure_mlflow_ui(workspace)  # that of `coevo ui`, named as one that somebody else runs would be
    (server,) = (server for server in recorded(workspace) if server.name == "mlflow")
    kill = (f"kill:{server.pid}", "coevo.tasks.publish.mlflow.tracker:Tracker._publish_points@2")
    line = (fault_at.__file__, *kill, "--", "coevo", *RUN, "--name", "mlflow", "--workspace", workspace)
    done = warm.run(*line, environment={**os.environ, "MLFLOW_TRACKING_URI": url}, timeout=900)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(re.findall(r"^warning: .*; the run continues and tries again", done.stdout, re.MULTILINE)) == 1
    assert not server.answers()
    assert states(workspace, "mlflow") == untouched
    resumed = coevo("resume", "mlflow", workspace=workspace)  # to the same store
    assert (resumed.returncode, resumed.stderr) == (0, "")
    assert published(workspace, "mlflow") == [1, 2, 3]
