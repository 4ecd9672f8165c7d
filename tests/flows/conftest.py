"""Whole runs that several modules compare with."""

import pytest
from support.runs import RUN, coevo, states


@pytest.fixture
def no_servers_named(monkeypatch):
    """No server but the workspace's own."""
    for name in ("PREFECT_API_URL", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def workspace(tmp_path_factory):
    """A workspace with servers of its own; runs in it share one warm start."""
    place = tmp_path_factory.mktemp("workspace")
    yield place
    coevo("down", workspace=place)


@pytest.fixture(scope="session")
def untouched(workspace):
    """The states of the run ``untouched``, which nothing disturbed."""
    done = coevo(*RUN, "--name", "untouched", workspace=workspace)
    assert done.returncode == 0, done.stderr
    return states(workspace, "untouched")
