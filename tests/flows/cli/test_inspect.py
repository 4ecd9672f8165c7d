"""Listing, telling and comparing runs, beside a writer and without a trace."""

import json
import os

import pytest
from support.small_run import MUG, RECIPE

from coevo.lineage.lock import writer_lock
from coevo.lineage.status import record_stage, recording_status
from coevo.lineage.workspace import Workspace


def test_runs_are_listed_newest_last_with_their_headline_figures(coevo):
    listed = json.loads(coevo("runs", "--json").out)
    assert [row["run"] for row in listed] == ["first", "other", "bankless", "new"]
    assert listed[1] == {
        "run": "other",
        "recipe": RECIPE,
        "revision": 3,
        "iteration": 3,
        "start_success": 0.0,
        "final_success": 0.5,
        "evaluated": 3,
        "seconds": 8.0,
        "parent": None,
        "status": "stopped",
        "stage": "iteration 3 of 40",
        "reason": "no process has run it in this workspace",
        "process": None,
        "fault": None,
    }


def test_a_run_without_revisions_is_listed_without_figures(coevo):
    row = json.loads(coevo("runs", "--json").out)[-1]
    assert row == dict.fromkeys(row) | {
        "run": "new", "recipe": RECIPE, "status": "new", "reason": "no process has run it in this workspace",
    }  # fmt: skip


def test_an_empty_workspace_has_no_runs_and_says_how_to_start_one(coevo, tmp_path):
    assert json.loads(coevo("runs", "--json", "--workspace", tmp_path).out) == []
    assert "coevo run" in coevo("runs", "--workspace", tmp_path).out


def test_the_log_has_one_row_a_revision(coevo):
    rows = json.loads(coevo("log", "first", "--json").out)
    assert [row["revision"] for row in rows] == [0, 1, 2, 3]
    assert [row["held_out"] for row in rows] == [0.0, None, 0.5, 1.0]
    assert [row["bank"] for row in rows] == [0, 2, 2, 2]
    assert [row["what"] for row in rows] == ["start, evaluated", "2 admitted", "1 rejected, evaluated", "evaluated"]
    assert rows[2]["time"] == "1970-01-01T00:02:00Z"
    assert len({row["commit"] for row in rows}) == 4
    assert [row["metrics"].get("agent/success/seen-houses") for row in rows] == [0.0, None, 0.5, 1.0]


def test_a_run_that_a_process_writes_to_is_running_and_not_to_be_resumed(coevo, small_workspace):
    with writer_lock(Workspace(small_workspace).existing("first")), writer_lock(Workspace(small_workspace).run("new")):
        row = json.loads(coevo("runs", "--json").out)[0]
        assert (row["status"], row["process"]) == ("running", str(os.getpid()))
        assert f"running: process {os.getpid()}" in coevo("runs").out
        assert coevo("log", "first").out.splitlines()[-1] == f"first is running: process {os.getpid()}"
        assert len(json.loads(coevo("log", "first", "--json").out)) == 4
        assert f"process {os.getpid()} works on it" in coevo("log", "new").err


def test_a_run_whose_lock_a_command_holds_is_in_use_and_not_running(coevo, copied):
    paths = Workspace(copied).existing("first")
    with recording_status(paths):
        record_stage(paths, "iteration 4 of 40", revision=4)
    with writer_lock(paths):  # as gc, after the loop
        held = f"first is in use by process {os.getpid()}"
        assert coevo("log", "first").out.splitlines()[-1] == held
        assert held in coevo("runs").out.splitlines()
        assert json.loads(coevo("runs", "--json").out)[0]["status"] == "stopped"
        record_stage(paths, "iteration 4 of 40", revision=4)
        assert coevo("log", "first").out.splitlines()[-1] == f"first is running: process {os.getpid()}"


def test_the_log_ends_at_the_revision_named(coevo):
    assert [row["revision"] for row in json.loads(coevo("log", "first@1", "--json").out)] == [0, 1]


def test_a_run_without_a_bank_has_no_bank_size(coevo):
    assert json.loads(coevo("log", "bankless@0", "--json").out)[0]["bank"] is None


def test_people_get_a_table(coevo):
    lines = coevo("log", "first").out.splitlines()
    assert lines[0].split() == ["rev", "iter", "time", "success", "hits", "held", "out", "bank", "s", "what"]
    assert lines[3].split()[5:7] == ["0.500", "\u00b10.35"]
    assert lines[5:] == [
        "Best held-out success: first@3, 1.000 [0.510, 1.000]",
        "Best before the last one: first@2, 0.500 [0.150, 0.850]",
        "Success never fell beyond noise from one evaluation to the next",
        "Time: 8 s: rollout 6, other 2",
    ]
    assert coevo("log", "first@1").out.splitlines()[3:] == [
        "Best held-out success: first@0, 0.000 [0.000, 0.490]", "Time: 4 s: rollout 3, other 1",
    ]  # fmt: skip
    rows = json.loads(coevo("log", "first", "--json").out)
    assert [row["seconds_by_part"] for row in rows] == [{"rollout": 1.5, "other": 0.5}] * 4


READERS = (
    ("runs",),
    ("log", "first"),
    ("compare", "first", "other"),
    ("bank", "log", "first"),
    ("bank", "show", "first@1"),
    ("bank", "search", "first", "mug"),
    ("bank", "why", "first", MUG.id),
    ("bank", "diff", "first@1", "first"),
)
OTHERS = (("recipes",), ("methods",), ("envs",), ("gc", "--keep-last", "1"), ("doctor",), ("--help",))


@pytest.mark.parametrize("reader", [*READERS, *OTHERS], ids=" ".join)
def test_tables_fit_eighty_columns(coevo, reader, eighty_columns):
    assert max(map(len, coevo(*reader).out.splitlines())) <= 80


def test_a_success_that_a_change_has_left_behind_is_named_with_its_revision(coevo, copied):
    assert "the last success" not in coevo("runs").out
    coevo("bank", "retire", "first", MUG.id, "--reason", "wrong")
    said = coevo("runs").out.splitlines()
    assert "first: the last success is that of revision 3, before a command changed its bank" in said
    assert not [line for line in said if line.startswith("other: the last")]


def files(root):
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in root.rglob("*")}


def test_readers_work_beside_a_writer_and_leave_no_trace(coevo, small_workspace):
    with writer_lock(Workspace(small_workspace).existing("first")):
        before = files(small_workspace / "runs")
        for reader in READERS:
            for arguments in (reader, (*reader, "--json")):
                result = coevo(*arguments)
                assert (result.code, result.err) == (0, ""), arguments
        assert files(small_workspace / "runs") == before
