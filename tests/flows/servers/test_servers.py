"""The real servers: Prefect's as a client sees it, MLflow's pages beside a run that publishes."""

import errno
import os
import subprocess
import sys
import threading
import urllib.request
from urllib.error import HTTPError

import httpx
import psutil
import pytest
from support.families import connections_of

from coevo.flows.servers.daemon import down, ensure, recorded
from coevo.flows.servers.server_process import ServerError
from coevo.flows.servers.server_secret import authorization_of, health_of, secret_of
from coevo.flows.servers.servers import (
    CLIENT,
    drop_events,
    ensure_mlflow_ui,
    ensure_prefect,
    prefect_in_use,
    use_prefect,
)
from coevo.utilities.errors import CoevoError


def test_named_servers_are_used_and_nothing_is_started(tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://prefect.example/api")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow.example")
    monkeypatch.setenv("PREFECT_HOME", "/their/home")
    for name in CLIENT:
        monkeypatch.setenv(name, "")
    assert ensure_prefect(tmp_path) == use_prefect(tmp_path) == "http://prefect.example/api"
    assert ensure_mlflow_ui(tmp_path) == "http://mlflow.example"
    assert os.environ["PREFECT_HOME"] == "/their/home"
    assert list(tmp_path.iterdir()) == []


def test_events_for_a_server_that_has_gone_are_dropped(monkeypatch):
    from prefect.events import Event
    from prefect.events.clients import NullEventsClient
    from prefect.events.worker import EventsWorker

    monkeypatch.setattr(EventsWorker, "_instances", {})
    monkeypatch.setattr(EventsWorker, "start", lambda worker: None)
    worker = EventsWorker.instance(NullEventsClient)
    worker.send(Event(event="test", resource={"prefect.resource.id": "test"}))
    waiting = threading.Thread(target=worker.wait_until_empty, daemon=True)
    waiting.start()
    drop_events()
    waiting.join(60)
    assert not waiting.is_alive()


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("first", "raised", "said"),
    [
        (FULL, OSError, "No space left on device"),
        (CoevoError("the disk has no room"), CoevoError, "the disk has no room"),
        (ValueError("of somebody else"), ServerError, "answers 500: see its log, .*; repeat it"),
        (None, ServerError, "answers 500: see its log, .*; repeat it"),
    ],
)
def test_an_error_that_prefect_could_not_report_is_the_one_that_is_raised(monkeypatch, first, raised, said):
    monkeypatch.setenv("PREFECT_API_URL", "http://prefect.example/api")
    request = httpx.Request("POST", "http://prefect.example/api")
    answer = httpx.HTTPStatusError("500", request=request, response=httpx.Response(500, request=request))
    with pytest.raises(raised, match=said), prefect_in_use("repeat it"):
        try:
            if first is not None:
                raise first
        finally:
            raise answer


REQUEST = httpx.Request("GET", "http://prefect.example/api/admin/version")
UNREACHED = {
    "nobody there": (httpx.ConnectError("refused"), "has gone: repeat it"),
    "no such name": (httpx.ConnectError("Name or service not known"), "has gone: repeat it"),
    "silence": (httpx.ConnectTimeout("timed out"), "has gone: repeat it"),
    "a hang-up": (httpx.RemoteProtocolError("Server disconnected"), "has gone: repeat it"),
    "a proxy that refuses": (httpx.ProxyError("403 Forbidden"), "has gone: repeat it"),
    "a secret is missing": (httpx.Response(401, request=REQUEST), r"refuses us \(401\)"),
    "another program": (httpx.Response(404, request=REQUEST), "answers 404"),
    "a broken server": (httpx.Response(502, request=REQUEST), "answers 502"),
    "a page instead of JSON": (ValueError("Expecting value: line 1"), "is no Prefect server of a version that fits"),
    "another version": (None, "is no Prefect server of a version that fits: correct PREFECT_API_URL"),
}


@pytest.mark.parametrize("name", UNREACHED)
def test_a_named_server_that_does_not_answer_the_first_request_is_one_line(monkeypatch, name):
    """As Prefect's client wraps it when it asks for the version."""
    cause, line = UNREACHED[name]
    monkeypatch.setenv("PREFECT_API_URL", "http://prefect.example/api")
    if isinstance(cause, httpx.Response):
        cause = httpx.HTTPStatusError("said", request=REQUEST, response=cause)
    with pytest.raises(ServerError, match=line) as caught, prefect_in_use("repeat it"):
        if cause is None:
            raise RuntimeError("Found incompatible versions: client: 3.8.8, server: 2.1. Major versions must match.")
        raise RuntimeError("Failed to reach API at http://prefect.example/api/") from cause
    assert "\n" not in f"{caught.value}"


def test_an_error_of_the_code_within_stays_as_it_is():
    with pytest.raises(RuntimeError, match=r"^of a step$"), prefect_in_use():
        raise RuntimeError("of a step")


FLOW = """
import sys
from pathlib import Path
from coevo.flows.servers.servers import use_prefect
use_prefect(Path(sys.argv[1]))
from prefect import flow
from coevo.utilities.errors import CoevoError
from coevo.tasks.stage import stage

@stage("gate")
def gate():
    raise CoevoError("one line")

@flow(name="stopped")
def run():
    gate()

try:
    run()
except CoevoError as error:
    sys.exit(str(error))
"""


def test_settings_that_are_the_same_are_not_read_again(monkeypatch, tmp_path):
    from prefect.context import refresh_global_settings_context

    read = []
    monkeypatch.setattr("prefect.logging.configuration.setup_logging", lambda **asked: read.append(asked))
    for name in CLIENT:
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    try:
        assert use_prefect(tmp_path) == "http://127.0.0.1:9/api"
        use_prefect(tmp_path)
        assert read == [{"incremental": False}]
    finally:
        monkeypatch.undo()
        refresh_global_settings_context()


@pytest.mark.full
@pytest.mark.parametrize("before", ["", "import prefect"], ids=["", "prefect-imported-before"])
def test_a_flow_that_is_stopped_says_so_in_one_line(prefect_workspace, no_servers_named, before):
    command = [sys.executable, "-c", f"{before}\n{FLOW}", prefect_workspace]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=400)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "one line\n")
    assert (prefect_workspace / "prefect" / "prefect.db").is_file()


@pytest.mark.full
def test_mlflow_pages_share_the_database_and_a_few_processes_do(tmp_path, no_servers_named, monkeypatch):
    monkeypatch.setenv("MLFLOW_SERVER_ALLOWED_HOSTS", "*")  # for a server of the user's own
    monkeypatch.setenv("MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE", "true")
    workspace = tmp_path / "my wörkspace"
    try:
        url = ensure_mlflow_ui(workspace)
        assert url == ensure_mlflow_ui(workspace)
        secret = secret_of(workspace, "mlflow")
        ours = {"Authorization": authorization_of(secret)}
        with urllib.request.urlopen(urllib.request.Request(url, headers=ours), timeout=30) as page:
            assert b"<title>MLflow</title>" in page.read()
        assert refused(url, {**ours, "Host": "evil.example"})
        assert refused(url, {**ours, "Host": "192.168.0.1"})
        assert refused(url, {**ours, "Host": "evil.example"}, b"{}")
        assert refused(url, {**ours, "Origin": "https://evil.example"}, b'{"name": "stranger"}')
        assert not refused(url, {**ours, "Origin": url}, b'{"name": "ours"}')
        assert (workspace / "mlflow.db").is_file()
        server = psutil.Process(ensure(workspace, "mlflow", [], health_of(secret), {}).pid)
        assert len(server.children(recursive=True)) <= 2
        assert listened_at(server) == {"127.0.0.1"}
    finally:
        assert down(workspace) == ["mlflow"]


def refused(url, headers, body=None):
    """Whether MLflow refuses to show its pages, or to make an experiment, in one line."""
    headers = {"Content-Type": "application/json", **headers}
    path = "/" if body is None else "/ajax-api/2.0/mlflow/experiments/create"
    try:
        urllib.request.urlopen(urllib.request.Request(url + path, body, headers), timeout=30).close()
    except HTTPError as error:
        with error:
            return (error.code, len(error.read().splitlines())) == (403, 1)
    return False


@pytest.mark.full
def test_prefect_is_heard_on_this_machine_alone(prefect_workspace):
    (server,) = (one for one in recorded(prefect_workspace) if one.name == "prefect")
    assert listened_at(psutil.Process(server.pid)) == {"127.0.0.1"}


def listened_at(server):
    """Addresses on which a server and its children take connections."""
    family = [server, *server.children(recursive=True)]
    return {each.laddr.ip for each in connections_of(family) if each.status == psutil.CONN_LISTEN}
