"""Internalization on real stores: three kinds of experience on the same tasks and draws, and nothing else changes."""

import math

import pytest
from support.batches import entry
from support.sessions import do, iterate, opened
from support.worker import Keeping, expert_worker

from coevo.configs.load.load import load_recipe
from coevo.envs.registry import make
from coevo.records.intervals import paired
from coevo.tasks.steps.evaluate import evaluate, gains, internalize, panels_of
from coevo.utilities.errors import CoevoError

SMALL = [
    "warmstart=null", "rollout.tasks=8", "rollout.group_size=4", "evaluation.tasks=48", "evaluation.every=1000",
    "evaluation.final_panels=[]", "bank.admission={type: append}",
]  # fmt: skip
PANEL = "seen-houses"
FOLDER = f"bank/internalization/{PANEL}"


def configured(*settings):
    return load_recipe("homerules-experience-only", [*SMALL, "evaluation.internalization=2", *settings])


def test_three_arms_on_the_same_tasks_and_draws_with_at_most_one_entry(tmp_path):
    worker = expert_worker(Keeping)
    with opened(tmp_path, configured(), played=worker) as session:
        for _ in range(3):
            iterate(session)
        before = (dict(session.bank.stats), list(session.bank.entries), session.bank.version, list(session.recent))
        evaluated, worker.asked = evaluate(session), []
        first, again = internalize(session), internalize(session)
        assert (first.metrics, first.spent) == (again.metrics, again.spent)
        assert evaluate(session) == evaluated
        assert (dict(session.bank.stats), list(session.bank.entries), session.bank.version, session.recent) == before
        top1, none, random = worker.asked[:3]
    assert [attempt.key for attempt in top1] == [a.key for a in none] == [a.key for a in random]
    assert {len(attempt.entries) for attempt in none} == {0}
    assert {len(attempt.entries) for attempt in random} == {1}
    assert max(len(attempt.entries) for attempt in top1) == 1
    assert any(one.entries != other.entries for one, other in zip(top1, random, strict=True))
    assert first.spent["cost/internalization/episodes"] == 3 * 48
    assert "cost/episodes" not in first.spent
    # The expert follows true lessons.
    assert first.metrics[f"{FOLDER}/top1"] > first.metrics[f"{FOLDER}/none"]


def test_worked_values():
    nan = math.nan
    found = gains("p", {"top1": [1, 1, 0, nan, 1], "none": [0, 1, 0, 1, nan], "random": [1, 0, nan, nan, nan]})
    assert {name: found[f"bank/internalization/p/{name}"] for name in ("top1", "none", "random")} == {
        "top1": 0.75, "none": 0.5, "random": 0.5,
    }  # fmt: skip
    told = [
        found[f"bank/internalization/p/top1_minus_none{end}"] for end in ("", "_low_over_tasks", "_high_over_tasks")
    ]
    gain = paired([1, 1, 0], [0, 1, 0])
    assert told == [gain.mean, gain.low, gain.high]
    assert found["bank/internalization/p/top1_minus_random"] == 0.5


def test_fewer_than_two_pairs_have_no_gain():
    found = gains("p", {"top1": [1, math.nan], "none": [0, 1], "random": [math.nan, math.nan]})
    assert found == {"bank/internalization/p/top1": 1.0, "bank/internalization/p/none": 0.5}


def test_an_empty_bank_is_not_measured(tmp_path):
    with opened(tmp_path, configured(), played=expert_worker(Keeping)) as session:
        found = internalize(session)
        assert (found.metrics, found.spent, session.parts.worker.asked) == ({}, {}, [])


def test_it_is_due_every_k_revisions_and_at_the_end(tmp_path):
    config = configured("iterations=7", "lineage.every=2", "bank.every=2")
    with opened(tmp_path, config, entries=[entry()], played=expert_worker(Keeping)) as session:
        due = []
        for iteration in range(7):
            session.iteration, session.pending.revision = iteration, iteration // 2 + 1
            due += [iteration] * session.due.internalization()
    assert due == [3, 6]


def test_gates_of_retrieval_do_not_apply(tmp_path):
    config = configured("bank.retrieval.warmup=100")
    with opened(tmp_path, config, entries=[entry(scope="")], played=expert_worker(Keeping)) as session:
        do(session, internalize)
        assert any(attempt.entries for attempt in session.parts.worker.asked[0])


def test_panels_that_do_not_read_the_bank_are_refused(tmp_path):
    config = configured("evaluation.panels=[no-bank]")
    with (
        opened(tmp_path, config, played=expert_worker(Keeping)) as session,
        pytest.raises(CoevoError, match=r"no panel of evaluation\.panels reads: add one that does"),
    ):
        internalize(session)


def test_panels_are_those_of_the_world_in_force(tmp_path):
    config, expert = configured("env.drift=2", "iterations=100"), expert_worker()
    env = make(config.env)
    worker = type(expert)(env, expert.context, expert.engine, expert.max_turns)
    with opened(tmp_path, config, played=worker) as session:
        session.iteration = 9
        (found,) = panels_of(session)
    assert found.hash == env.at(10).panel(PANEL, 48).hash != env.panel(PANEL, 48).hash
