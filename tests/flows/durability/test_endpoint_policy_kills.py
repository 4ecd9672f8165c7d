"""A run whose policy is behind a real endpoint that fails: killed five times, it pays nothing twice that was kept."""

import signal
from collections import Counter

import pytest
from support.completions import completions
from support.endpoint_expert import ExpertEndpoint, tokens
from support.fsck import fsck
from support.runs import coevo, states

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

SETTINGS = (
    "homerules-experience-only-endpoint", "iterations=3", "bank.every=1", "policy.timeout=2.0", "rollout.tasks=4",
    "policy.price={prompt: 1.0, answer: 4.0}", "bank.writer.candidates=4", "bank.admission={replays: 2, delta: -1.0}",
    "evaluation={every: 2, tasks: 8, final_panels: []}",
)  # fmt: skip
LEDGER = "coevo.models.endpoint_policy.call_ledger:CallLedger"
KILLS = (
    f"{LEDGER}.settle@12",
    f"{LEDGER}.settle@60+",
    "stage:judge@1~0.3",
    "coevo.lineage.repository:Repository.commit@1",
    f"{LEDGER}.turn_over@1+",
)
CONCURRENCY = 16
"""Calls that may be on their way when a process dies."""


def test_killed_five_times_it_asks_only_for_what_is_missing_and_ends_as_one_that_was_not(workspace):
    endpoint = ExpertEndpoint(busy=0.05, hang=0.02, broken=0.01)
    with completions(endpoint) as (url, _):
        whole, killed = ((*SETTINGS, f"policy.url={url}", "--name", name) for name in ("paid", "paid-killed"))
        done = coevo("run", *whole, workspace=workspace)
        assert done.returncode == 0, done.stderr
        assert "calls of model with" in done.stdout and "policy.budget allows 10,000,000 tokens" in done.stdout
        first = Counter(endpoint.served)
        endpoint.served.clear()
        arguments = ("run", *killed)
        for kill in KILLS:
            assert coevo(*arguments, workspace=workspace, kill=kill).returncode == -signal.SIGKILL, kill
            arguments = ("resume", "paid-killed")
        done = coevo(*arguments, workspace=workspace)
        assert done.returncode == 0, done.stderr
    assert states(workspace, "paid-killed") == states(workspace, "paid")
    assert fsck(workspace, "paid-killed") == []
    last = states(workspace, "paid")[-1]["metrics"]
    assert last["bank/size"] > 0
    again = Counter(endpoint.served)
    assert again.keys() == first.keys()
    # What was on its way when the process died is asked once more.
    assert again.total() <= first.total() + len(KILLS) * CONCURRENCY


def test_a_small_budget_ends_the_run_in_one_line_and_is_exceeded_by_one_answer_at_most(workspace):
    endpoint = ExpertEndpoint(busy=0.05, hang=0.02, broken=0.01)
    with completions(endpoint) as (url, asked):
        budget = 20_000
        line = (*SETTINGS, f"policy.url={url}", f"policy.budget.tokens={budget}", "--name", "poor")
        assert coevo("run", *line, workspace=workspace, kill=f"{LEDGER}.settle@9").returncode == -signal.SIGKILL
        for _ in range(2):
            done = coevo("resume", "poor", workspace=workspace)
            assert done.returncode == 2
            assert f"policy.budget.tokens={budget} is spent" in done.stderr.strip().splitlines()[-1]
        largest = max(sum(tokens(each.body)) for each in asked)
    assert 0.5 * budget <= endpoint.bill <= budget + largest
