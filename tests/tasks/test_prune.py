"""What the workspace's Prefect server keeps, on a real server."""

import sqlite3
from contextlib import closing
from functools import partial
from uuid import uuid4

import pytest
from prefect import flow, runtime
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_LEVEL, temporary_settings
from support.nights import wait_for
from support.publications import publication

from configs.errors import CoevoError
from tasks.artifacts import artifacts_of, key_of
from tasks.prune import KEEP, VARIABLE, prune, pruner
from tasks.stage import stage


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


def named(client, flow_run):
    """Names of a flow run's task runs that have ended."""
    own = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run]))
    found = client.read_task_runs(flow_run_filter=own, limit=200)
    return sorted(run.name.partition("-")[0] for run in found if run.state is not None and run.state.is_final())


@pytest.mark.full
def test_the_oldest_task_runs_go_and_those_under_way_stay(client, prefect_workspace):
    database = prefect_workspace / "prefect" / "prefect.db"

    @stage("under way")
    def under_way():
        wait_for(lambda: len(named(client, runtime.flow_run.id)) == 4, 60)
        prune(database, 2)
        prune(database, 2)  # nothing more
        assert named(client, runtime.flow_run.id) == ["third", "work"]

    @flow(name="pruned")
    def run():
        for name in ("first", "second", "third", "work"):
            stage(name)(lambda: None)()
        under_way()
        return [runtime.flow_run.id]

    (flow_run,) = run()
    wait_for(lambda: named(client, flow_run) == ["third", "under way", "work"], 60)
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as opened:
        assert opened.execute("select count(*) from events").fetchone() == (0,)
        (states,) = opened.execute("select count(*) from task_run_state").fetchone()
        (runs,) = opened.execute("select count(*) from task_run").fetchone()
        assert (runs, states <= 4 * runs) == (3, True)  # states go with their task runs


@pytest.mark.full
def test_a_server_that_is_not_pruned_is_named_once_and_has_its_pages(client, tmp_path):
    warnings, name = [], f"demo-{uuid4().hex}"

    @flow(name="unpruned")
    def run():
        with artifacts_of(name, 4, warnings.append, partial(prune, tmp_path / "nothing.db", 7)) as pages:
            for number in range(3):
                made = publication(number)
                made.manifest.state["iteration"] = number
                pages.submit(made)

    run()
    said = "unable to open database file; tried again with each revision"
    assert warnings == [f"Prefect keeps old task runs, its database grows: {said}"]
    assert key_of(name, "revision") in {page.key for page in client.read_latest_artifacts()}
