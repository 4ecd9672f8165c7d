"""The attack on a worker through its Prefect server, and who may use that server nevertheless."""

import json
import re
import subprocess
from base64 import b64encode
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from support import small_run
from support.damaged import Damaged
from support.families import command_of
from support.runs import coevo, revisions
from support.scheduled import Scheduled, create, wait_for, worker
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from coevo.flows.servers.daemon import down, ensure, recorded
from coevo.flows.servers.server_secret import home, secret_of
from coevo.flows.servers.servers import SERVER, ensure_prefect
from coevo.flows.sessions.schedules import POOL

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

STRANGERS = {
    "a page of another site": ({"Origin": "https://evil.example"}, 403),
    "a page without an origin": ({"Origin": "null"}, 403),
    "a page of another port": ({"Origin": "http://127.0.0.1:9"}, 403),
    "a page whose name leads here": ({"Host": "evil.example"}, 403),
    "another user": ({}, 401),
    "another user who guesses": ({"Authorization": "Basic " + b64encode(b"user:guess").decode()}, 401),
}
SOCKETS = ("/api/events/in", "/api/events/out", "/api/logs/out", "/api/task_runs/subscriptions/scheduled")
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Protocol": "prefect",
}


@dataclass(frozen=True)
class Working:
    """A workspace with a worker, and where its Prefect server is."""

    root: Path
    log: Path
    process: subprocess.Popen
    address: str

    def ask(self, method, path, headers, **body):
        """Status and answer."""
        content = json.dumps(body).encode() if method == "POST" else b""
        connection = HTTPConnection(self.address, timeout=60)
        connection.putrequest(method, path, skip_host=True)
        about = {"Content-Type": "application/json", "Content-Length": str(len(content))} if content else {}
        for name, value in ({"Host": self.address} | about | headers).items():
            connection.putheader(name, value)
        connection.endheaders(content)
        with connection.getresponse() as answer:
            said = answer.status, answer.read() if answer.status != 101 else b""
        connection.close()
        return said

    def have_run(self, command, headers):
        """The three requests that make a worker run a command; their statuses.

        A server whose database is locked says 503, and every client of Prefect then asks again.
        """
        statuses = []

        def asked(path, body):
            said = self.ask("POST", path, headers, **body)
            return said if said[0] != 503 else None

        def post(path, **body):
            status, answer = wait_for(lambda: asked(path, body))
            statuses.append(status)
            return json.loads(answer)["id"] if status < 300 else str(uuid4())

        flow = post("/api/flows/", name="stranger")
        wanted = {"work_pool_name": POOL, "entrypoint": "x.py:x", "job_variables": {"command": command}}
        deployment = post("/api/deployments/", name="stranger", flow_id=flow, **wanted)
        post(f"/api/deployments/{deployment}/create_flow_run", state={"type": "SCHEDULED"})
        return statuses

    def arguments(self):
        """Output of ``ps`` for the worker, of the server, and of all that they have started."""
        (server,) = recorded(self.root)
        first = [psutil.Process(self.process.pid), psutil.Process(server.pid)]
        shown = []
        for process in [*first, *(child for one in first for child in one.children(recursive=True))]:
            shown += command_of(process)
        return shown


@pytest.fixture(scope="module")
def working(tmp_path_factory):
    root, log = tmp_path_factory.mktemp("working") / "new", tmp_path_factory.mktemp("log") / "worker.log"
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING", "MLFLOW_TRACKING_URI"):
            patch.delenv(name, raising=False)
        create(root, "nightly", iterations=100_000)
        small_run.build(root)
        Damaged(root).object("r3:manifest.json").unlink()
        with worker(root, log) as process:
            try:
                wait_for(lambda: b"Running scheduled sessions" in log.read_bytes())
                (server,) = recorded(root)
                yield Working(root, log, process, f"127.0.0.1:{server.port}")
            finally:
                down(root)


def having_it(secret):
    return {"Authorization": "Basic " + b64encode(secret.encode()).decode()}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_stranger_has_nothing_run(working, stranger, tmp_path):
    headers, status = STRANGERS[stranger]
    assert working.have_run(f"touch {tmp_path / 'ran'}", headers) == [status] * 3
    for path in ("/api/flows/filter", "/api/admin/settings", "/docs", "/openapi.json", "/api/docs", "/"):
        refused, said = working.ask("GET", path, headers)
        assert (refused, said.count(b"\n")) == (status, 1)
    answer, said = working.ask("POST", "/api/flows/filter", having_it(secret_of(working.root)))
    assert (answer, json.loads(said)) == (200, [])
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("path", SOCKETS)
def test_a_strangers_socket_stays_closed(working, path):
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "http://127.0.0.1:9"}, {"Host": "evil.example"}):
        assert working.ask("GET", path, UPGRADE | headers)[0] == 403
    for token in (None, "", "user:guess"):
        with connect(f"ws://{working.address}{path}", subprotocols=["prefect"]) as socket:
            socket.send(json.dumps({"type": "auth", "token": token}))
            with pytest.raises(ConnectionClosed, match="1008"):
                socket.recv(60)
    with connect(f"ws://{working.address}{path}", subprotocols=["prefect"]) as socket:
        socket.send(json.dumps({"type": "auth", "token": secret_of(working.root)}))
        assert json.loads(socket.recv(60)) == {"type": "auth_success"}


def test_a_server_that_is_named_without_its_secret_is_a_line(working, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", f"http://{working.address}/api")
    monkeypatch.delenv("PREFECT_API_AUTH_STRING", raising=False)
    done = coevo("schedule", "list", workspace=working.root)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "refuses us (401): set PREFECT_API_AUTH_STRING to what it asks for" in done.stderr


def test_who_has_the_secret_has_it_run(working, tmp_path):
    secret = secret_of(working.root)
    statuses = working.have_run(f"touch {tmp_path / 'ran'}", having_it(secret))
    assert [status // 100 for status in statuses] == [2, 2, 2]
    wait_for((tmp_path / "ran").exists)


@pytest.mark.soak
def test_a_broken_run_is_a_line_and_its_session_fails_alone(working):
    (fault,) = (line for line in coevo("runs", workspace=working.root).stdout.splitlines() if line[:7] == "first: ")
    wait_for(lambda: working.log.read_text().splitlines().count(fault) == 1, 60)
    added = coevo("schedule", "add", "first", "--cron", "0 2 1 1 *", workspace=working.root)
    assert added.returncode == 0, added.stderr
    sessions = Scheduled(f"http://{working.address}/api", "first", secret_of(working.root))
    ended = sessions.end_of(sessions.begin())
    assert (ended.name, ended.message.count("\n")) == ("Failed", 0)
    assert "manifest" in ended.message
    assert working.process.poll() is None


def test_sessions_are_played_the_secret_stays_where_it_is_and_down_ends_them_without_a_traceback(working, tmp_path):
    secret = secret_of(working.root)
    added = coevo("schedule", "add", "nightly", "--cron", "0 2 1 1 *", "--iterations", "100000", workspace=working.root)
    assert added.returncode == 0, added.stderr
    Scheduled(f"http://{working.address}/api", "nightly", secret).begin()
    wait_for(lambda: revisions(working.root, "nightly") >= 3)
    shown = working.arguments()
    assert working.address.split(":")[1] in shown
    password = secret.split(":")[1]
    assert password not in "\n".join(shown)
    written = len(working.log.read_bytes())
    assert coevo("down", workspace=working.root).stdout == "Stopped prefect.\n"
    assert working.process.wait(60) == 2
    files = [working.log, *(path for path in working.root.rglob("*") if path.is_file())]
    holding = [path for path in files if password.encode() in path.read_bytes()]
    assert holding == [home(working.root) / "secret"]
    said = working.log.read_bytes()[written:].decode()
    assert "Traceback" not in said
    assert said.splitlines()[-1].endswith("start `coevo worker` again to continue")


def test_a_server_without_the_secret_and_that_of_a_copy_are_not_used(tmp_path, no_servers_named):
    root, copy = tmp_path / "original", tmp_path / "copy"
    command = ["prefect", "server", "start", "--host", "127.0.0.1", "--port"]
    try:
        old = ensure(root, "prefect", command, "/api/health", SERVER | {"PREFECT_HOME": str(home(root))})
        url = ensure_prefect(root)
        assert not old.runs()
        (server,) = recorded(root)
        subprocess.run(["cp", "-a", root, copy], check=True)
        assert re.match("No server of ", coevo("down", workspace=copy).stdout)
        assert secret_of(copy) != secret_of(root)
        assert ensure_prefect(copy) != url
        assert server.answers()
        assert ensure_prefect(root) == url
    finally:
        down(root)
        down(copy)
