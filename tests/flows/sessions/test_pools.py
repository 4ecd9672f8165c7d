"""Two workers on one pool, with a real Postgres: a killed worker loses no session, and none is done twice."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import psutil
import pytest
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from support.families import kill_all
from support.postgres import Postgres
from support.runs import revisions
from support.scheduled import PATIENCE, Scheduled, create, wait_for, worker

from coevo.flows.servers import servers
from coevo.flows.servers.daemon import down
from coevo.flows.servers.server_secret import VARIABLE, secret_of
from coevo.flows.servers.servers import CLIENT
from coevo.flows.sessions import schedules
from coevo.flows.sessions.schedules import Schedule
from coevo.lineage.lock import in_use
from coevo.lineage.workspace import Workspace

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]
POOL = "shared"


@pytest.fixture
def server(tmp_path, monkeypatch, no_servers_named):
    """API of the server of a workspace, on a Postgres; this process is its client."""
    postgres, root = Postgres(), tmp_path / "workspace"
    for name, value in postgres.environment.items():
        monkeypatch.setenv(name, value)
    url = servers.ensure_prefect(root)
    for name, value in {**CLIENT, "PREFECT_API_URL": url, VARIABLE: secret_of(root)}.items():
        monkeypatch.setenv(name, value)
    with temporary_settings({PREFECT_API_URL: url, PREFECT_API_AUTH_STRING: secret_of(root)}):
        yield url, root, postgres
    down(root)
    postgres.remove()


def kill(process):
    """End a worker and what it started at once, as the loss of its machine does."""
    worker = psutil.Process(process.pid)
    family = [worker, *worker.children(recursive=True)]
    kill_all(family)
    process.wait()


@pytest.mark.parametrize("count", [3, pytest.param(20, marks=pytest.mark.soak)])
def test_sessions_of_a_killed_worker_are_done_by_the_other_one_and_all_once(server, tmp_path, count):
    url, root, postgres = server
    later = datetime.now(UTC) + timedelta(days=50)
    names = [f"run-{number}" for number in range(count)]
    for name in names:
        create(root, name, iterations=1)
        terms = {"run": name, "workspace": str(root), "iterations": 1}
        schedules.add(Workspace(root), name, Schedule(f"0 2 {later.day} {later.month} *", "UTC", terms, POOL))
    runs = {name: Scheduled(url, name, secret_of(root)) for name in names}
    pool = ("--pool", POOL)
    with worker(root, tmp_path / "one", arguments=pool) as one, worker(root, tmp_path / "two", arguments=pool) as two:
        begun = {name: runs[name].begin() for name in names}
        kill(wait_for(lambda: next((each for each in (one, two) for name in names if holds(each, root, name)), None)))
        ended = {name: wait_for(lambda name=name: done(runs[name], begun[name]), 3 * PATIENCE) for name in names}
    assert Counter(state.name for state in ended.values()) == {"Completed": count}
    assert {name: revisions(root, name) for name in names} == dict.fromkeys(names, 2)
    sessions = "SELECT count(*) FROM flow_run r JOIN flow f ON f.id = r.flow_id WHERE f.name = 'session'"
    assert postgres.execute(f"{sessions} AND r.state_type = 'COMPLETED'", "prefect") == [(count,)]


def done(run, session):
    state = run.client.read_flow_run(session).state
    return state.is_completed() and state


def holds(process, root, name):
    """Return True if a process of this worker writes to a run."""
    paths = Workspace(root).existing(name)
    if not in_use(paths):
        return False
    note = paths.lock.with_suffix(".pid")
    words = note.read_text().split() if note.exists() else []
    return bool(words) and int(words[0]) in {one.pid for one in psutil.Process(process.pid).children(recursive=True)}
