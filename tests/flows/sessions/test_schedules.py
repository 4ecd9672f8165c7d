"""Schedules for real: a server, a worker, and sessions that go on with a run whatever happened to the one before."""

import json
import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil
import pytest
from prefect import get_client
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from support.runs import coevo, published, revisions, states
from support.scheduled import Scheduled, create, wait_for, worker

from coevo.flows.servers.daemon import down, recorded
from coevo.flows.servers.server_secret import secret_of
from coevo.flows.servers.servers import CLIENT
from coevo.flows.sessions import schedules
from coevo.flows.sessions.schedules import Schedule
from coevo.flows.sessions.session_worker import STOP_TIMEOUT_S
from coevo.flows.upkeep.branch import restore
from coevo.flows.upkeep.publishing import complete
from coevo.lineage.lock import in_use
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

SECRET = "swordfish-42"


@pytest.fixture
def workspace(prefect_workspace, prefect_url, monkeypatch):
    """The workspace of the session's server, which this process talks to as well."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for name, value in {**CLIENT, "PREFECT_API_URL": prefect_url}.items():
        monkeypatch.setenv(name, value)
    with temporary_settings({PREFECT_API_URL: prefect_url}):
        yield prefect_workspace


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_a_schedule_fires_and_the_next_session_goes_on_and_what_falls_due_meanwhile_is_refused(
    workspace, prefect_url, tmp_path
):
    paths = create(workspace, "nightly", iterations=1)
    added = coevo("schedule", "add", "nightly", "--cron", "* * * * * */20", "--iterations", "1", workspace=workspace)
    assert added.returncode == 0, added.stderr
    sessions = Scheduled(prefect_url, "nightly")
    with worker(workspace, tmp_path / "log") as process:
        wait_for(lambda: in_use(paths) and paths.lineage.exists())  # before, its length is set under the lock as well
        meanwhile = sessions.begin()
        with pytest.raises(CoevoError, match=r"run 'nightly' is in use by process \d+ \(a scheduled session\)"):
            restore(Workspace(workspace), paths, 0, print)
        assert sessions.end_of(meanwhile).message == "Deployment concurrency limit reached."
        (last,) = (row.last for row in schedules.planned(Workspace(workspace)) if row.run == "nightly")
        assert last in {"Running", "Completed"}  # and not how the one ended that was refused
        wait_for(lambda: revisions(workspace, "nightly") >= 3)  # the first session made revisions 0 and 1
        schedules.pause(Workspace(workspace), "nightly")
        process.terminate()
        process.wait(STOP_TIMEOUT_S + 60)
    assert [row.next for row in schedules.planned(Workspace(workspace)) if row.run == "nightly"] == [None]
    found = states(workspace, "nightly")
    assert [(state["iteration"], state["parent"]) for state in found][:3] == [(0, None), (1, 0), (2, 1)]
    schedules.remove(Workspace(workspace), "nightly")
    assert [row.run for row in schedules.planned(Workspace(workspace)) if row.run == "nightly"] == []


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_killed_session_and_a_dead_mlflow_lose_nothing_and_secrets_stay_where_they_are(
    workspace, prefect_url, tmp_path, webhook
):
    paths = create(workspace, "stubborn", iterations=1000)
    later = datetime.now(UTC) + timedelta(days=50)  # nothing but what the test begins
    cron = f"0 2 {later.day} {later.month} *"
    schedules.add(Workspace(workspace), "stubborn", Schedule(cron, "UTC", terms(workspace, max_hours=0.001)))
    sessions = Scheduled(prefect_url, "stubborn")
    missed = [sessions.begin() for _ in range(3)]  # while no worker is there
    with worker(workspace, tmp_path / "log", MLFLOW_TRACKING_URI=f"http://user:{SECRET}@127.0.0.1:9"):
        wait_for(lambda: revisions(workspace, "stubborn") >= 1)
        os.kill(int(paths.lock.with_suffix(".pid").read_text().split()[0]), signal.SIGKILL)
        assert sorted(sessions.end_of(session).name for session in missed) == ["Cancelled", "Cancelled", "Crashed"]
        before = revisions(workspace, "stubborn")
        assert sessions.end_of(sessions.begin()).name == "Completed"
    after = revisions(workspace, "stubborn")
    assert before < after < 500  # the hours were over long before the iterations
    assert [state["parent"] for state in states(workspace, "stubborn")] == [None, *range(after - 1)]
    (told,) = webhook
    played = states(workspace, "stubborn")[-1]["iteration"] - states(workspace, "stubborn")[before - 1]["iteration"]
    assert told == {"text": f"coevo: stubborn played {played} iterations", "token": SECRET}
    assert Cursor(paths.published).read() == -1
    complete(Workspace(workspace), paths)
    steps = published(workspace, "stubborn")
    assert steps == sorted(set(steps))
    assert steps[-1] == after - 1
    assert leaks(workspace, tmp_path, Path(os.environ["PREFECT_HOME"])) == []


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_killed_worker_takes_its_session_along_and_the_next_one_makes_up_for_it(workspace, prefect_url, tmp_path):
    for run in ("whole", "orphan"):
        paths = create(workspace, run, iterations=4)
    assert coevo("resume", "whole", workspace=workspace).returncode == 0
    later = datetime.now(UTC) + timedelta(days=50)
    terms = {"run": "orphan", "workspace": str(workspace), "iterations": 4}
    schedules.add(Workspace(workspace), "orphan", Schedule(f"0 2 {later.day} {later.month} *", "UTC", terms))
    sessions = Scheduled(prefect_url, "orphan")
    with worker(workspace, tmp_path / "killed") as process:
        session = sessions.begin()
        wait_for(lambda: revisions(workspace, "orphan") >= 2)
        family = psutil.Process(process.pid).children(recursive=True)
        assert int(paths.lock.with_suffix(".pid").read_text().split()[0]) in {one.pid for one in family}
        process.kill()
        assert sessions.end_of(session).name in {"Crashed", "Completed"}
        assert psutil.wait_procs(family, timeout=90)[1] == []
    with worker(workspace, tmp_path / "next"):
        assert sessions.end_of(sessions.begin()).name == "Completed"
    assert states(workspace, "orphan")[:5] == states(workspace, "whole")
    schedules.remove(Workspace(workspace), "orphan")


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_worker_has_its_sessions_whatever_becomes_of_the_server(tmp_path, no_servers_named):
    root = tmp_path / "own"
    create(root, "bereft", iterations=1)
    added = coevo("schedule", "add", "bereft", "--cron", "0 2 1 1 *", "--iterations", "1", workspace=root)
    assert added.returncode == 0, added.stderr
    before = server_of(root)
    with worker(root, tmp_path / "log") as process:
        wait_for(lambda: b"Running scheduled sessions" in (tmp_path / "log").read_bytes())
        os.kill(before.pid, signal.SIGKILL)
        wait_for(lambda: server_of(root).pid != before.pid and server_of(root).answers(), 120)
        assert server_of(root).url == before.url
        secret = secret_of(root)
        with temporary_settings({PREFECT_API_URL: f"{before.url}/api", PREFECT_API_AUTH_STRING: secret}):
            sessions = Scheduled(f"{before.url}/api", "bereft", secret)
            begun = sessions.begin()
            assert sessions.end_of(begun).name == "Completed"
            (session, told), (loop, shown) = sessions.of(begun, "bereft")
        assert session.name.startswith(f"bereft {datetime.now(UTC):%Y-%m-}")
        assert set(session.tags) == set(loop.tags) == {"bereft", "homerules-experience-only"}
        asked = {"iterations": 1, "max_hours": None, "unattended": True, "accept_change": False}
        assert loop.parameters == {"run": "bereft", "workspace": str(Workspace(root).root), **asked}
        assert [line.split(",")[0] for line in shown] == ["revision 0", "revision 1"]
        assert told == shown
        assert revisions(root, "bereft") == 2
        assert down(root) == ["prefect"]
        assert process.wait(60) == 2
    assert (tmp_path / "log").read_text().splitlines()[-1].endswith("start `coevo worker` again to continue")
    moved = root.rename(tmp_path / "moved")
    (listed,) = json.loads(coevo("schedule", "list", "--json", workspace=moved).stdout)
    assert (listed["run"], listed["cron"]) == ("bereft", "0 2 1 1 *")
    api = f"{server_of(moved).url}/api"
    with (
        temporary_settings({PREFECT_API_URL: api, PREFECT_API_AUTH_STRING: secret_of(moved)}),
        get_client(sync_client=True) as client,
    ):
        assert client.read_deployment_by_name("session/bereft").parameters["workspace"] == str(moved)
    assert down(moved) == ["prefect"]


def server_of(root):
    return next(server for server in recorded(root) if server.name == "prefect")


@pytest.mark.full
def test_prefect_yaml_deploys_what_schedule_add_does(workspace, prefect_url):
    asked = {"workspace": str(workspace), "iterations": 20, "max_hours": 3}
    schedules.add(Workspace(workspace), "by-command", Schedule("0 2 * * *", "UTC", {"run": "by-command", **asked}))
    named = {"PREFECT_API_URL": prefect_url, "COEVO_RUN": "by-file", "COEVO_WORKSPACE": str(workspace)}
    deploy = [Path(sys.executable).with_name("prefect"), "--no-prompt", "deploy", "--all"]
    subprocess.run(deploy, cwd=Path(schedules.__file__).parents[3], env=os.environ | named, check=True, timeout=400)
    found = {row.run: row.schedule for row in schedules.planned(Workspace(workspace)) if row.run.startswith("by-")}
    assert found["by-file"] == Schedule("0 2 * * *", "UTC", {"run": "by-file", **asked})
    assert found["by-command"] == Schedule("0 2 * * *", "UTC", {"run": "by-command", **asked})
    with get_client(sync_client=True) as client:
        of_file, of_command = (client.read_deployment_by_name(f"session/by-{how}") for how in ("file", "command"))
    for deployment in (of_file, of_command):
        assert deployment.entrypoint == "coevo.flows.sessions.scheduled_session.session"
        assert deployment.work_pool_name == schedules.POOL
        assert deployment.concurrency_options.collision_strategy == "CANCEL_NEW"
        assert deployment.global_concurrency_limit.limit == 1
    for run in found:
        schedules.remove(Workspace(workspace), run)


def terms(workspace, max_hours):
    """Parameters of a session of ``stubborn`` with a notification."""
    asked = {"iterations": 1000, "max_hours": max_hours, "rollback_on_drop": None, "notify": "custom-webhook/nightly"}
    return {"run": "stubborn", "workspace": str(workspace), **asked}


def leaks(*places):
    """Files that hold the secret."""
    files = [path for workspace in places for path in workspace.rglob("*") if path.is_file()]
    return [path for path in files if SECRET.encode() in path.read_bytes()]


@pytest.fixture
def webhook(workspace):
    """Notifications sent by the server's block ``custom-webhook/nightly``."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        CustomWebhookNotificationBlock(
            name="nightly",
            url=f"http://127.0.0.1:{server.server_port}/",
            json_data={"text": "{{subject}}", "token": "{{token}}"},
            secrets={"token": SECRET},
        ).save("nightly", overwrite=True)
        yield received
        server.shutdown()
        thread.join()
