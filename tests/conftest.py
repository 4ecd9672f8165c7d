"""Shared by every test: the one Prefect server of the session."""

import gc
import os
import signal
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest
from support.in_memory import keep_in_memory
from support.migrated import copy_databases
from support.standstill import allow_more_time, pytest_timeout_set_timer  # noqa: F401

from coevo.flows.servers import servers
from coevo.flows.servers.daemon import down
from coevo.flows.servers.server_secret import VARIABLE, secret_of

gc.disable()  # until the tests are imported, which makes many objects that stay: see pytest_collection_finish
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs in its background without
hypothesis.settings.register_profile("coevo", deadline=None)  # a loaded machine is no counterexample
hypothesis.settings.load_profile("coevo")
MEMORY = keep_in_memory()
HOME = tempfile.TemporaryDirectory(prefix="prefect-home-")
SERVED = tempfile.TemporaryDirectory(prefix="prefect workspace-")
DATABASES = copy_databases()
os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: there are as many processes as cores
os.environ["PREFECT_HOME"] = HOME.name  # before Prefect is imported, which would make ~/.prefect
os.environ[VARIABLE] = secret_of(Path(SERVED.name))  # and which reads this once


LONG = ("durability", "sessions", "methods", "loop", "trainer")
"""Rooms with files that take minutes."""


def pytest_collection_modifyitems(items):
    """Start these first, so that no process of ``--no-loadscope-reorder`` ends long after the others."""
    allow_more_time(items)
    items.sort(key=lambda item: item.path.parent.name not in LONG)


def pytest_collection_finish(session):
    """Take what is imported out of every collection of garbage, and start importing what commands need.

    The imports run beside the first tests; where no test starts a command, nothing is imported.
    """
    gc.freeze()
    gc.enable()
    if warm := sys.modules.get("support.warm"):
        warm.prepare()


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A workspace with the run ``first``, of which nothing is published. Nothing may change it."""
    from support.small_run import build  # with Lance and DVC, which few tests need

    return build(tmp_path_factory.mktemp("built") / "workspace").workspace.root


@pytest.fixture
def s3(tmp_path, monkeypatch):
    """An S3 server, to which the environment of this process leads."""
    from support.s3_server import Server

    server = Server(tmp_path)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    yield server
    server.stop()


@pytest.fixture
def servers_end(tmp_path):
    """The servers of workspaces in the test's folder end with it."""
    yield
    for workspace in (tmp_path, tmp_path / "workspace"):
        down(workspace)


@pytest.fixture(scope="session")
def prefect_workspace():
    """A workspace whose Prefect server runs until the session ends; this process has its secret."""
    workspace = Path(SERVED.name)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PREFECT_API_URL", raising=False)
        servers.ensure_prefect(workspace)
    yield workspace
    down(workspace)


@pytest.fixture(scope="session")
def prefect_url(prefect_workspace):
    """Its API."""
    assert not os.environ.get("PREFECT_API_URL")
    return servers.ensure_prefect(prefect_workspace)
