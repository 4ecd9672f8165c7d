"""The benchmark of publishing on a short history: real stores, no policy."""

import pytest
from support.small_run import build

from benchmarks.running import publishing_cost
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace


@pytest.mark.full
def test_each_revision_but_the_first_is_timed(tmp_path):
    build(tmp_path, "small")
    workspace = Workspace(tmp_path)
    with Lineage.open(workspace.existing("small").lineage, workspace.cache) as lineage:
        history = lineage.history.log()
    found = publishing_cost.measure(workspace, history)
    assert found["revisions"] == 3
    assert min(found["publishing_seconds"], found["evaluated_seconds"]) > 0
    assert not (tmp_path / "mlflow.db").exists(), "the workspace's own pages are left alone"
