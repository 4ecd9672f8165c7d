"""Retention of the workspace's Prefect server, on a real server."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from uuid import uuid4

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_LEVEL, temporary_settings
from support.publications import publication
from support.runs import ROOT
from support.scheduled import wait_for

from coevo.flows.servers.daemon import down
from coevo.flows.servers.server_secret import VARIABLE as SECRET
from coevo.flows.servers.servers import ensure_prefect
from coevo.tasks.publish.prefect import artifacts_of, key_of
from coevo.tasks.run.open_run import KEEP, VARIABLE, prune, pruner
from coevo.utilities.errors import CoevoError


@pytest.mark.parametrize(("written", "kept"), [(None, KEEP), ("50", 50), ("0", None)])
def test_a_setting_says_how_many_task_runs_the_workspace_s_own_server_keeps(tmp_path, monkeypatch, written, kept):
    if written is not None:
        monkeypatch.setenv(VARIABLE, written)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    made = pruner(tmp_path)
    assert (made and made.args) == (kept and (tmp_path / "prefect" / "prefect.db", kept))
    monkeypatch.setenv("PREFECT_HOME", "/their/home")
    assert pruner(tmp_path) is None


@pytest.mark.parametrize("written", ["-1", "many", "", "1.5"])
def test_a_setting_that_is_no_number_is_refused(tmp_path, monkeypatch, written):
    monkeypatch.setenv(VARIABLE, written)
    with pytest.raises(CoevoError, match=f"{VARIABLE}='{written}': set the number of task runs"):
        pruner(tmp_path)


@pytest.fixture
def client(prefect_url):
    with (
        temporary_settings({PREFECT_API_URL: prefect_url, PREFECT_LOGGING_LEVEL: "CRITICAL"}),
        get_client(sync_client=True) as client,
    ):
        yield client


PRUNED = """
import sys
from pathlib import Path
from coevo.flows.servers.servers import use_prefect
use_prefect(Path(sys.argv[1]))
from prefect import flow
from coevo.tasks.stage import stage

@flow(name="pruned")
def run():
    for name in ("first", "second", "third", "work"):
        stage(name)(lambda: None)()
    stage("under way")(sys.stdin.readline)()

run()
"""
"""A flow whose last task run is under way until a line comes."""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A workspace whose Prefect server has the task runs of one test."""
    for name in ("PREFECT_API_URL", SECRET):
        monkeypatch.delenv(name, raising=False)
    try:
        ensure_prefect(tmp_path)
        yield tmp_path
    finally:
        down(tmp_path)


WRITTEN = """
SELECT task_run.name, type FROM task_run LEFT JOIN task_run_state ON task_run_id = task_run.id
UNION ALL
SELECT '', type FROM task_run_state WHERE task_run_id NOT IN (SELECT id FROM task_run)
"""


def states(database):
    """Task runs by name, each with its states; those whose task run has gone are under the empty name."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as opened:
        assert opened.execute("SELECT count(*) FROM events").fetchone() == (0,)
        found = opened.execute(WRITTEN).fetchall()
    names = {name for name, _ in found}
    return {one: sorted(state or "" for name, state in found if name == one) for one in names}


@pytest.mark.full
def test_the_oldest_task_runs_go_and_those_under_way_stay(own):
    database = own / "prefect" / "prefect.db"
    begun, ended = ["PENDING", "RUNNING"], ["COMPLETED", "PENDING", "RUNNING"]
    names = ("first", "second", "third", "work")
    with subprocess.Popen([sys.executable, "-c", PRUNED, own], cwd=ROOT, stdin=subprocess.PIPE) as process:
        try:
            # What a client has done is written later, and a state that comes last brings back a task run that has gone.
            wait_for(lambda: states(database) == {**dict.fromkeys(names, ended), "under way": begun}, 120)
            prune(database, 2)
            prune(database, 2)  # nothing more
            assert states(database) == {"third": ended, "work": ended, "under way": begun}
            process.communicate(b"\n", 120)
        finally:
            process.kill()
    assert process.returncode == 0
    wait_for(lambda: states(database) == dict.fromkeys(("third", "work", "under way"), ended), 60)


@pytest.mark.full
def test_a_server_that_is_not_pruned_is_named_once_and_has_its_pages(client, tmp_path):
    warnings, name = [], f"demo-{uuid4().hex}"

    @flow(name="unpruned")
    def run():
        with artifacts_of(name, 4, "steps-grpo", warnings.append, partial(prune, tmp_path / "nothing.db", 7)) as pages:
            for number in range(3):
                made = publication(number)
                made.manifest.state["iteration"] = number
                pages.submit(made)

    run()
    said = "unable to open database file; tried again with each revision"
    assert warnings == [f"Prefect keeps old task runs, its database grows: {said}"]
    assert key_of(name, "revision") in {page.key for page in client.read_latest_artifacts()}
