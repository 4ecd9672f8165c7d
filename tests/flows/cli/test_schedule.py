"""Schedules: the help has examples, and the table fits; ``test_arguments`` has the mistakes."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from coevo.flows.sessions import schedules
from coevo.flows.sessions.schedules import Schedule, StoredSchedule


@pytest.mark.parametrize("command", ["add", "list", "pause", "resume", "remove"])
def test_help_has_an_example(coevo, command):
    assert f"Example: coevo schedule {command}" in coevo("schedule", command, "--help").out


def test_the_list_fits_eighty_columns_and_breaks_no_word(coevo, eighty_columns, monkeypatch):
    terms = {"iterations": 20, "max_hours": 3.0, "rollback_on_drop": 0.1, "notify": "custom-webhook/nightly"}
    schedule = Schedule("0 2 * * *", "Europe/Berlin", terms)
    due = datetime(2026, 1, 31, 1, 0, tzinfo=UTC)
    rows = [StoredSchedule(run, schedule, paused=paused, next=when, last="Completed")
            for run, when, paused in (("homerules-coevo-rl-1", due, False), ("other", None, True), ("new", None, False))
            ]  # fmt: skip
    monkeypatch.setattr(schedules, "planned", lambda directory: rows)
    shown = coevo("schedule", "list").out
    words = {
        "homerules-coevo-rl-1",
        "other",
        "Europe/Berlin",
        "iterations,",
        "h,",
        "rollback",
        "custom-webhook/nightly",
    }
    assert {*words, "2026-01-31", "02:00", "paused", "soon", "Completed"} <= set(shown.split())
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("database", ["absent", "without deployments"])
def test_no_server_starts_to_say_that_there_is_no_schedule(coevo, tmp_path, monkeypatch, database):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setattr(schedules, "use_prefect", lambda _: pytest.fail("a server starts"))
    directory = tmp_path / "workspace"
    if database != "absent":
        (directory / "prefect").mkdir(parents=True)
        with closing(sqlite3.connect(directory / "prefect/prefect.db")) as made:
            made.execute("CREATE TABLE deployment (id TEXT)")
    assert "No run has a schedule" in coevo("schedule", "list", "--workspace", directory).out
    for command in ("pause", "resume", "remove"):
        done = coevo("schedule", command, "nightly", "--workspace", directory)
        assert (done.code, "No run 'nightly'" in done.err) == (2, True), done.err


@pytest.mark.parametrize("command", ["pause", "resume", "remove"])
def test_no_server_starts_for_a_run_without_a_schedule(refused, small_workspace, monkeypatch, command):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setattr(schedules, "use_prefect", lambda _: pytest.fail("a server starts"))
    said = refused("schedule", command, "first")
    assert "run 'first' has no schedule: make one with `coevo schedule add first`" in said
    assert "No run 'frist'" in refused("schedule", command, "frist")
