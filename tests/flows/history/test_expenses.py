"""Expense by part, on histories worked out by hand."""

from coevo.flows.history.expenses import Expense, expenses
from coevo.lineage.revision.manifest import Manifest
from coevo.tasks.cost import KINDS, spending


def revision(number, metrics, seconds=None, restored=None):
    state = {"revision": number, "parent": number - 1 if number else None, "restored_from": restored}
    rates = {f"cost/seconds/{stage}": spent for stage, spent in (seconds or {}).items()}
    return Manifest({**state, "metrics": {f"cost/{name}": float(n) for name, n in metrics.items()}}, {"metrics": rates})


START = revision(0, {}, {"preparation": 6.0, "initial policy": 3.0, "evaluate": 9.0, "wall": 20.0})
PREPARED, EVALUATED, OTHER = (
    Expense(name, None, None, None, seconds, ())
    for name, seconds in (("preparation", 9.0), ("evaluation", 9.0), ("other", 2.0))
)
ROLLOUT = {"episodes": 4, "tokens": 40, "rollout/episodes": 4, "rollout/tokens": 40}
REPLAY = {"episodes": 6, "tokens": 60, "judging/episodes": 2, "judging/tokens": 20}
WRITING = {"writing/questions": 3, "writing/prompt_tokens": 30, "writing/answer_tokens": 5}


def test_parts_are_summed_apart_with_the_budgets_that_contain_them():
    seconds = {"rollout": 1.0, "judge": 2.0, "write candidates": 4.0}
    one = revision(1, ROLLOUT | REPLAY | WRITING, seconds | {"gate episodes": 5.0, "wall": 7.0})
    two = revision(2, ROLLOUT, {"rollout": 1.0, "wall": 1.0})
    assert expenses([START, one, two]) == [
        (PREPARED, EVALUATED, OTHER),
        (
            PREPARED,
            Expense("rollout", 4, None, 40, 1.0, KINDS),
            Expense("writing", None, 3, 35, 4.0, ("seconds",)),
            Expense("judging", 2, None, 20, 2.0, KINDS),
            EVALUATED,
            OTHER,
        ),
        (
            PREPARED,
            Expense("rollout", 8, None, 80, 2.0, KINDS),
            Expense("writing", None, 3, 35, 4.0, ("seconds",)),
            Expense("judging", 2, None, 20, 2.0, KINDS),
            EVALUATED,
            OTHER,
        ),
    ]
    assert sum(each.seconds for each in expenses([START, one, two])[-1]) == 28.0
    assert (
        sum(each.seconds for each in expenses([START, one, two])[-1] if "seconds" in each.budgets)
        == spending([START, one, two])[-1].seconds
    )


def test_a_part_that_did_nothing_is_absent_and_not_zero():
    found = expenses([START, revision(1, ROLLOUT, {"rollout": 1.0, "retire": 0.0001, "write candidates": 0.5})])[-1]
    assert [(each.part, each.questions, each.seconds) for each in found] == [
        ("preparation", None, 9.0), ("rollout", None, 1.0), ("writing", None, 0.5), ("evaluation", None, 9.0),
        ("other", None, 2.0),
    ]  # fmt: skip


def test_a_rollback_repeats_no_expense():
    history = [START, revision(1, ROLLOUT, {"rollout": 1.0}), revision(2, ROLLOUT, restored=1)]
    assert expenses(history)[1] == expenses(history)[2]


def test_money_is_summed_where_prices_are_set():
    paid = WRITING | {"writing/money": 0.25, "evaluation/money": 0.5, "evaluation/questions": 1}
    history = [START, revision(1, ROLLOUT | paid), revision(2, ROLLOUT | paid)]
    found = {each.part: each.money for each in expenses(history)[-1]}
    assert found == {"preparation": None, "rollout": None, "writing": 0.5, "evaluation": 1.0, "other": None}


def calls(number, **counts):
    """A revision whose policy is behind an endpoint."""
    found = revision(number, {} if number == 0 else ROLLOUT)
    rates = {f"cost/policy/{name}": float(count) for name, count in counts.items()}
    return Manifest(found.state, {"metrics": rates})


def test_calls_of_a_policy_behind_an_endpoint_are_a_part_of_their_own():
    spent = {"requests": 5, "prompt_tokens": 300, "answer_tokens": 20, "money": 0.25, "run_prompt_tokens": 900}
    history = [calls(0, **spent), calls(1, **spent), revision(2, ROLLOUT, restored=1)]
    found = {each.part: each for each in expenses(history)[-1]}
    assert found["policy"] == Expense("policy", None, 10, 640, None, (), 0.5)
    assert found["rollout"].money is None
    unpriced = expenses([calls(1, requests=5, prompt_tokens=300, answer_tokens=20)])[-1]
    assert [each.money for each in unpriced if each.part == "policy"] == [None]
