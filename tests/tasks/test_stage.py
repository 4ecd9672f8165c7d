"""Stages within a flow and outside of one."""

import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from prefect import flow
from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_LEVEL, temporary_settings
from support.batches import batch
from support.listener import Listener
from support.prefect_client import secret

from coevo.tasks.pending_revision import PendingRevision
from coevo.tasks.publish.reporter import counting, in_stage, reporting_to
from coevo.tasks.stage import grouping, recording, stage, untracked


@stage("double")
def double(value: int, times: int = 2) -> int:
    """Multiply."""
    return value * times


@untracked("negative")
def negative(value: int) -> int:
    return -value


@stage("hand on")
def hand_on(episodes):
    return episodes


@contextmanager
def client_of(url):
    with temporary_settings({PREFECT_API_URL: url, PREFECT_LOGGING_LEVEL: "CRITICAL"}):
        yield


def test_seconds_add_up_by_name_and_only_where_they_are_recorded():
    @stage("nap")
    def nap():
        time.sleep(0.02)

    seconds, since = {}, time.monotonic()
    with recording(seconds):
        nap()
        nap()
        double(1)
    whole = time.monotonic() - since
    nap()
    assert set(seconds) == {"nap", "double"}
    assert 0.04 <= seconds["nap"] <= whole


@pytest.mark.parametrize("kind", [stage, untracked])
def test_outside_a_flow_a_stage_is_its_function_tracked_or_not(kind):
    @kind("triple")
    def triple(value: int, times: int = 1) -> int:
        """Three times."""
        return 3 * value * times

    seconds = {}
    with recording(seconds):
        assert triple(4, times=5) == 60
    assert (triple.__name__, triple.__doc__, set(seconds)) == ("triple", "Three times.", {"triple"})


def test_seconds_of_a_stage_that_fails_are_recorded():
    @stage("fail")
    def fail():
        raise KeyError("x")

    seconds = {}
    with recording(seconds), pytest.raises(KeyError):
        fail()
    assert set(seconds) == {"fail"}


def test_outside_a_flow_what_runs_beside_a_block_ends_before_it():
    order = []

    @stage("note")
    def note(text):
        order.append(text)

    with note.beside("gate"):
        order.append("block")
    assert order == ["gate", "block"]


def test_what_runs_beside_a_block_does_not_report_as_that_block():
    heard = Listener()

    @stage("play")
    def play():
        counting("{over} of 8")(over=3)

    with reporting_to(heard), in_stage("r5 update"):
        play()
        with play.beside():
            counting("{batches} of 4")(batches=1)
    assert heard.notes == ["r5 update", "play", "play: 3 of 8", "r5 update", "r5 update: 1 of 4", ""]


@pytest.mark.full
def test_within_a_flow_it_runs_beside_the_block_and_its_error_comes_first(prefect_url):
    begun, goes_on = threading.Event(), threading.Event()

    @stage("gate")
    def gate(complaint):
        begun.set()
        assert goes_on.wait(30)
        if complaint:
            raise ValueError(complaint)

    @flow(name="beside")
    def run(complaint, failure):
        begun.clear(), goes_on.clear()
        with gate.beside(complaint):
            assert begun.wait(30)
            goes_on.set()
            if failure:
                raise KeyError(failure)

    with client_of(prefect_url):
        run("", "")
        for failure in ("", "the block fails as well"):
            with pytest.raises(ValueError, match="not finite"):
                run("not finite", failure)
        with pytest.raises(KeyError, match="the block"):
            run("", "the block fails alone")


@pytest.mark.full
def test_within_a_flow_it_is_a_task_that_hands_over_the_very_objects(prefect_url):
    episodes, seconds = batch(16, 8, 4), {}

    @stage("rollout")
    def rollout(session):
        return session.pending.revision

    @stage("gate")
    def gate(session):
        assert session.pending.revision == 12

    session = SimpleNamespace(pending=PendingRevision(revision=12))

    @flow(name="stages")
    def run():
        with recording(seconds):
            assert hand_on(episodes) is episodes
            assert double(4) == 8
            assert negative(4) == -4
            with gate.beside(session):
                assert rollout(session) == 12
        return [hand_on.__name__]

    with client_of(prefect_url):
        state = run(return_state=True)
    assert state.is_completed()
    assert set(seconds) == {"hand on", "double", "negative", "gate", "rollout"}
    names = ["double", "hand on", "r12 gate", "r12 rollout"]
    assert task_runs(prefect_url, state.state_details.flow_run_id, len(names)) == names


@pytest.mark.full
def test_a_group_is_one_task_above_its_stages_without_seconds_of_its_own(prefect_url):
    seconds, session = {}, SimpleNamespace(pending=PendingRevision(revision=3))

    @stage("rollout")
    def rollout(session):
        return session.pending.revision

    @grouping("iteration")
    def iterate(session, more):
        with double.beside(more):
            return rollout(session)

    @flow(name="groups")
    def run():
        with recording(seconds):
            return [iterate(session, 4), iterate(session, 5)]

    assert iterate(session, 4) == 3, "outside of a flow it is its function"
    with client_of(prefect_url):
        state = run(return_state=True)
    assert state.is_completed()
    assert set(seconds) == {"rollout", "double"}
    flow_run = state.state_details.flow_run_id
    assert task_runs(prefect_url, flow_run, 6) == ["double"] * 2 + ["r3 iteration"] * 2 + ["r3 rollout"] * 2
    found = {each["id"]: each for each in stored_runs(prefect_url, flow_run)}
    above = {
        each["name"]: [found[one["id"]]["name"] for one in each["task_inputs"].get("__parents__", [])]
        for each in found.values()
    }
    assert above == {"r3 iteration": [], "r3 rollout": ["r3 iteration"], "double": ["r3 iteration"]}


@pytest.mark.full
def test_orchestrating_a_batch_of_episodes_costs_milliseconds(prefect_url):
    """Walked through by Prefect, this batch costs about 0.65 s a call."""
    episodes = batch(16, 8, 4)

    @flow(name="costs")
    def run():
        hand_on(episodes)
        start = time.perf_counter()
        for _ in range(20):
            hand_on(episodes)
        return (time.perf_counter() - start) / 20

    with client_of(prefect_url):
        assert run() < 0.05


@pytest.mark.full
def test_an_exception_reaches_the_caller_and_retries_call_again(prefect_url):
    calls = []

    @stage("flaky", retries=2)
    def flaky(needed):
        calls.append(needed)
        if len(calls) < needed:
            raise ConnectionError(len(calls))
        return "done"

    @flow(name="flaky")
    def run(needed):
        return flaky(needed)

    with client_of(prefect_url):
        assert run(3) == "done"
        assert calls == [3, 3, 3]
        calls.clear()
        with pytest.raises(ConnectionError, match="3"):
            run(9)


def stored_runs(url, flow_run):
    """Task runs of a flow run, as far as the server has received them."""
    import httpx

    body = {"task_runs": {"flow_run_id": {"any_": [str(flow_run)]}}}
    return httpx.post(f"{url}/task_runs/filter", json=body, timeout=30, auth=secret()).json()


def task_runs(url, flow_run, expected, seconds=20):
    """Names of the completed task runs that the server knows, sorted; it receives them in the background."""
    give_up = time.monotonic() + seconds
    while True:
        found = stored_runs(url, flow_run)
        names = sorted(run["name"] for run in found if run["state_type"] == "COMPLETED")
        if len(names) >= expected or time.monotonic() > give_up:
            return names
        time.sleep(0.5)
