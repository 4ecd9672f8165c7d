"""JERP as a user runs it: two iterations with everything real."""

import json

import pytest
from support.runs import SMALL, coevo, states

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
ONLY_THEIRS = {
    "bank/edits/applied",
    "bank/edits/rejected",
    "bank/edits/largest_pool",
    "bank/writer/operations",
    "policy/reward/discount",
}


def test_two_iterations_edit_pools_and_leave_an_audit(workspace):
    settings = [setting for setting in SMALL if not setting.startswith("bank.admission")]
    done = coevo("run", "homerules-jerp", "iterations=2", "seed=5", *settings, "--name", "jerp", workspace=workspace)
    assert done.returncode == 0, done.stderr
    start, *trained = states(workspace, "jerp")
    assert all(state["metrics"].keys() >= ONLY_THEIRS for state in trained)
    assert len({state["artifacts"]["policy"] for state in (start, *trained)}) == 3
    log = json.loads(coevo("bank", "log", "jerp", "--json", workspace=workspace).stdout)
    proposed = sum(state["metrics"]["bank/edits/proposed"] for state in trained)
    assert sum(row["outcome"] in ("applied", "rejected") for row in log) == proposed > 0
    assert coevo("fsck", "jerp", workspace=workspace).returncode == 0
