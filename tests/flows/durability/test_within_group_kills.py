"""A run that tries candidates within its groups: killed amid trial, firing and commit, it ends as one that was not."""

import signal

import pytest
from support.fsck import fsck
from support.runs import SMALL, coevo, states

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

KILLS = (
    "coevo.tasks.revision_artifacts:write_trials@1+",
    "coevo.tasks.play.treatment_groups:WithCandidate.of_step@5",
    "coevo.memory.bank_state:BankState.proceed@1+",
    "coevo.lineage.repository:Repository.commit@1",
)
"""Amid the commit that begins trials, the rollout that tries, the firing that ends them, and the commit of that."""
UNJUDGED = tuple(setting for setting in SMALL if not setting.startswith("bank.admission."))
TRIED = "bank.admission={type: within-group, iterations: 1, delta: -1.0}"
RUN = ("run", "homerules-coevo-rl", "iterations=3", "seed=5", *UNJUDGED, TRIED, "evaluation.retrieval=true")


def test_a_killed_run_tries_and_admits_the_same(workspace):
    done = coevo(*RUN, "--name", "within-group", workspace=workspace)
    assert done.returncode == 0, done.stderr
    arguments = (*RUN, "--name", "within-group-killed")
    for kill in KILLS:
        assert coevo(*arguments, workspace=workspace, kill=kill).returncode == -signal.SIGKILL, kill
        arguments = ("resume", "within-group-killed")
    done = coevo(*arguments, workspace=workspace)
    assert done.returncode == 0, done.stderr
    found = states(workspace, "within-group")
    assert states(workspace, "within-group-killed") == found
    assert fsck(workspace, "within-group-killed") == []
    begun, ended, groups = (
        [state["metrics"].get(f"bank/trial/{name}", 0) for state in found] for name in ("begun", "ended", "groups")
    )
    assert begun[1] > 0 and ended[2] == begun[1] and groups[2] > 0
    assert found[-1]["metrics"]["bank/size"] > 0
    assert {"trials", "source_tasks"} <= found[-1]["artifacts"].keys()
