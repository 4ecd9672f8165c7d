"""Sessions that nobody plays any more are marked Crashed, and no others."""

from datetime import timedelta
from uuid import UUID

import pytest
from prefect import flow
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Pending, Running
from support.prefect_client import client_of
from support.scheduled import create

from coevo.flows.servers import stale
from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import Workspace

pytestmark = pytest.mark.full


@flow(name="session")
def session(run, workspace):
    """Name of a scheduled session."""


@pytest.fixture
def begun(tmp_path, prefect_url, monkeypatch):
    """A session of a run in a state, as a function; and its state now."""
    monkeypatch.setattr(stale, "LOCK_TIMEOUT", timedelta(0))
    create(tmp_path, "first", iterations=1)
    with temporary_settings({PREFECT_API_URL: prefect_url}), client_of(prefect_url) as client:

        def begin(state, workspace=tmp_path, run="first"):
            parameters = {"run": run, "workspace": str(Workspace(workspace).root)}
            return client.create_flow_run(session, name=run, parameters=parameters, state=state).id

        def state_of(identity: UUID):
            return client.read_flow_run(identity).state.name

        yield begin, state_of


def test_one_that_was_taken_and_never_begun_is_marked_while_others_go_on(begun, tmp_path):
    begin, state_of = begun
    taken, playing, elsewhere = begin(Pending()), begin(Running()), begin(Pending(), tmp_path / "elsewhere")
    assert stale.mark_unbegun_sessions(Workspace(tmp_path)) == 1
    assert [state_of(each) for each in (taken, playing, elsewhere)] == ["Crashed", "Running", "Pending"]


def test_one_that_no_process_plays_is_marked_where_no_session_goes_on(begun, tmp_path):
    begin, state_of = begun
    dead = begin(Running())
    with writer_lock(Workspace(tmp_path).existing("first")):
        assert stale.mark_dead_sessions(Workspace(tmp_path)) == 0
    assert stale.mark_dead_sessions(Workspace(tmp_path)) == 1
    assert state_of(dead) == "Crashed"


def test_one_of_a_damaged_run_is_left_alone_and_hides_no_other(begun, tmp_path):
    begin, state_of = begun
    Workspace(tmp_path).run("broken").lock.mkdir(parents=True)
    unknown, dead = (begin(Running(), run=run) for run in ("broken", "first"))
    assert stale.mark_dead_sessions(Workspace(tmp_path)) == 1
    assert (state_of(unknown), state_of(dead)) == ("Running", "Crashed")


def test_one_that_has_just_begun_is_given_time(begun, tmp_path, monkeypatch):
    begin, state_of = begun
    monkeypatch.setattr(stale, "LOCK_TIMEOUT", timedelta(minutes=5))
    young = [begin(Pending()), begin(Running())]
    assert stale.mark_unbegun_sessions(Workspace(tmp_path)) == stale.mark_dead_sessions(Workspace(tmp_path)) == 0
    assert [state_of(each) for each in young] == ["Pending", "Running"]


def test_a_run_of_the_same_name_in_another_workspace_is_left_alone(begun, tmp_path):
    begin, state_of = begun
    ours, theirs = begin(Running()), begin(Running(), tmp_path / "elsewhere")
    assert stale.mark_crashed("first", str(Workspace(tmp_path).root)) == 1
    assert [state_of(each) for each in (ours, theirs)] == ["Crashed", "Running"]
