"""The machine's clock is set while a worker runs: sessions follow the new time, not the one they were planned by."""

import os

import pytest
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterDeploymentId
from support.runs import coevo
from support.scheduled import Scheduled, create, wait_for, worker
from support.shifted_clock import ShiftedClock

from coevo.flows.servers.daemon import down, recorded
from coevo.flows.servers.server_secret import secret_of

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

MINUTE, HOUR, DAY = 60, 3600, 86400
JUMPS = {
    "ahead by four hours": 4 * HOUR,
    "back by an hour, as a machine whose clock has local time in autumn": -HOUR,
    "ahead by an hour, as in spring": HOUR,
    "back by a day": -DAY,
    "ahead by a day and some minutes": DAY + 7 * MINUTE,
    "back by two minutes": -2 * MINUTE,
    "back by thirty years, with an empty battery": -30 * 365 * DAY,
    "ahead to the present, by the network": 30 * 365 * DAY,
}
"""Seconds of each jump, one after another."""


def seconds(moment):
    return moment.timestamp()


def every(cron, root, clock, monkeypatch):
    """Give the run this schedule, by the shifted clock."""
    with monkeypatch.context() as patch:
        for name, value in clock.variables.items():
            patch.setenv(name, value)
        added = coevo("schedule", "add", "nightly", "--cron", cron, "--iterations", "1", workspace=root)
    assert added.returncode == 0, added.stderr


def test_sessions_follow_a_clock_that_is_set(tmp_path, no_servers_named, monkeypatch):
    root, log, clock = tmp_path / "new", tmp_path / "worker.log", ShiftedClock(tmp_path)
    create(root, "nightly", iterations=100_000)
    try:
        every("* * * * *", root, clock, monkeypatch)
        (server,) = recorded(root)
        with worker(root, log, **clock.variables):
            wait_for(lambda: b"Running scheduled sessions" in log.read_bytes())
            sessions = Scheduled(f"http://127.0.0.1:{server.port}/api", "nightly", secret_of(root))
            of_it = FlowRunFilter(deployment_id=FlowRunFilterDeploymentId(any_=[sessions.deployment]))

            def found():
                return sessions.client.read_flow_runs(flow_run_filter=of_it)

            def next_one():
                waiting = [seconds(run.expected_start_time) for run in found() if run.state.is_scheduled()]
                return min(waiting, default=None)

            def told(count):
                return log.read_bytes().count(b"planning all sessions") >= count

            clock.move(-4 * HOUR)
            wait_for(lambda: told(1))
            latest = clock.now() + HOUR
            wait_for(lambda: [run for run in found() if run.start_time and seconds(run.start_time) < latest])
            every("0 * * * *", root, clock, monkeypatch)
            for count, (name, jump) in enumerate(JUMPS.items(), start=2):
                clock.move(jump)
                wait_for(lambda count=count: told(count))
                assert wait_for(lambda: (at := next_one()) and 0 < at - clock.now() <= HOUR and at), name
    finally:
        down(root)
    assert "LD_PRELOAD" not in os.environ
