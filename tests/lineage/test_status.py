"""Status of runs: one word with a stage and a reason, whatever ended the process that ran the loop."""

from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support import small_run

from coevo.flows.history.run_summaries import RunSummary, run_summary
from coevo.lineage.lock import writer_lock
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import LoopRecord, RunStatus, record_reason, record_stage, recording_status, status_of
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError


@pytest.mark.parametrize(
    ("end", "status", "reason"),
    [
        (None, "stopped", "fewer than 40 iterations were asked for"),
        (KeyboardInterrupt(), "stopped", "interrupted"),
        (CoevoError("no room: make some"), "failed", "no room: make some"),
        (RuntimeError("a\nb"), "failed", "RuntimeError: a b"),
        (OSError(28, "No space left on device"), "failed", "No space left on device: make room"),
    ],
)
def test_the_status_says_how_the_last_process_ended(tmp_path, end, status, reason):
    paths, directory = small_run.build(tmp_path), Workspace(tmp_path)
    with suppress(KeyboardInterrupt, RuntimeError, CoevoError, OSError), recording_status(paths):
        record_stage(paths, "iteration 4 of 40", revision=4)
        # As after a kill: the loop has recorded no end, and no process holds the lock.
        assert run_summary(paths, directory).status == RunStatus(
            "crashed", "iteration 4 of 40", "its process was killed"
        )
        with writer_lock(paths):
            assert run_summary(paths, directory).status == RunStatus("running", "iteration 4 of 40")
        if end is not None:
            raise end
    found = run_summary(paths, directory).status
    stage = "iteration 4 of 40" if status == "failed" else "iteration 3 of 40"
    assert (found.status, found.stage) == (status, stage)
    assert found.reason.startswith(reason) and "\n" not in found.reason


def head(iteration=3, revision=3, restored=None, observed=None, metrics=None, **state):
    state |= {"revision": revision, "iteration": iteration, "restored_from": restored, "metrics": metrics or {}}
    return Manifest(state, observed or {})


ENDED = LoopRecord("iteration 3 of 40", 3, "stopped", "1 iterations are done, 1 were asked for")
KILLED = LoopRecord("iteration 5 of 40", 5)
SECOND, THIRD, BRANCHED = "iteration 2 of 40", "iteration 3 of 40", {"branched_from": {"run": "a", "revision": 2}}
CUT_OFF = LoopRecord("warm start", 0, "stopped", "interrupted")
STATUSES = {
    "never started": (None, None, "new", None, "no process has run it"),
    "interrupted in the warm start": (None, CUT_OFF, "stopped", "warm start", "interrupted"),
    "killed in the warm start": (None, LoopRecord("warm start"), "crashed", "warm start", "its process was killed"),
    "stopped by a limit": (head(), ENDED, "stopped", THIRD, "1 iterations are done"),
    "killed": (head(), KILLED, "crashed", KILLED.stage, "its process was killed"),
    "all done": (head(40), KILLED, "finished", "iteration 40 of 40", "all 40 iterations are done"),
    "waiting": (head(waiting=True), ENDED, "waiting", "approval of revision 3", "coevo approve run@3 [--reject]"),
    "waiting at the end": (head(40, waiting=True), ENDED, "waiting", "approval of revision 3", "coevo approve"),
    "decided": (head(revision=4, approval={"revision": 3}), ENDED, "stopped", THIRD, "revision 3 was decided"),
    "rolled back after a kill": (head(2, 6, restored=2), KILLED, "stopped", SECOND, "rolled back to revision 2"),
    "killed after a rollback": (head(2, 4, restored=2), KILLED, "crashed", KILLED.stage, "its process was killed"),
    "retired": (head(revision=4, retired={"entry": "a1"}), ENDED, "stopped", THIRD, "entry a1 was retired"),
    "imported": (head(revision=4, metrics={"bank/imported": 1.0}), ENDED, "stopped", THIRD, "imported"),
    "branched": (
        head(restored=2, observed=BRANCHED), None, "new", THIRD, "branched from a@2",
    ),
    "pulled": (head(), None, "stopped", THIRD, "no process has run it in this workspace"),
}  # fmt: skip


@pytest.mark.parametrize("case", STATUSES)
def test_the_status_follows_from_the_last_revision_and_the_record_of_the_loop(case):
    last, record, status, stage, reason = STATUSES[case]
    found = status_of("run", 40, last, record)
    assert (found.status, found.stage) == (status, stage)
    assert reason in found.reason


@pytest.mark.parametrize("holder", ["4242", "4242 (gc)", "unknown", "7 (a scheduled session)"])
@pytest.mark.parametrize("case", [case for case in STATUSES if STATUSES[case][1] is not None])
def test_a_command_that_holds_the_lock_does_not_run_the_loop(case, holder):
    """``gc``, ``fsck --repair``, ``pull`` or a change of the bank: the run is what it was."""
    last, record, status, stage, reason = STATUSES[case]
    about = SimpleNamespace(name="run"), SimpleNamespace(iterations=40), [] if last is None else [last]
    found = RunSummary(*about, holder, record=replace(record, process=42)).status
    assert (found.status, found.stage, reason in found.reason) == (status, stage, True)
    loop = RunSummary(*about, "42 (a scheduled session)", record=replace(record, process=42)).status
    assert (loop.status == "running") == (record.end is None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"stage": "a", "process": "b"}',
        "{",
        "[]",
        '{"stage": 1, "odd": 2}',
        "null",
        '{"stage": 1}',
        '{"stage": "a", "revision": "b"}',
        '{"stage": "a", "reason": [1]}',
        '{"stage": "a", "end": 1}',
    ],
)
def test_a_damaged_record_counts_as_none(tmp_path, text):
    paths = small_run.build(tmp_path)
    (paths.root / "status.json").write_text(text)
    assert run_summary(paths, Workspace(tmp_path)).status.status == "stopped"


def test_the_reason_is_the_limit_that_the_loop_reached(tmp_path):
    paths = small_run.build(tmp_path)
    with recording_status(paths):
        record_stage(paths, "iteration 4 of 40", revision=4)
        record_reason(paths, "0.10 of 0.1 hours are over")
    assert run_summary(paths, Workspace(tmp_path)).status.reason == "0.10 of 0.1 hours are over"
