"""Whole runs that several modules compare with."""

import os

import pytest
from support.runs import RUN, coevo, share, states


@pytest.fixture
def no_servers_named(monkeypatch):
    """No server but the workspace's own."""
    for name in ("PREFECT_API_URL", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def warmstarts(tmp_path_factory):
    """Warm starts that workspaces share, those of pytest's other processes included."""
    base = tmp_path_factory.getbasetemp()
    directory = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "warmstarts"
    directory.mkdir(exist_ok=True)
    return directory


@pytest.fixture(scope="session")
def workspace(tmp_path_factory, warmstarts):
    """A workspace with servers of its own."""
    directory = share(warmstarts, tmp_path_factory.mktemp("workspace"))
    yield directory
    coevo("down", workspace=directory)


@pytest.fixture(scope="session")
def untouched(workspace):
    """The states of the run ``untouched``, which nothing disturbed."""
    done = coevo(*RUN, "--name", "untouched", workspace=workspace)
    assert done.returncode == 0, done.stderr
    return states(workspace, "untouched")
