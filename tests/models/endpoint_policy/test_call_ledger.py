"""The ledger of calls: whatever a kill leaves of it, what is kept stays and what may be paid counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.configs.bank.writer_model_config import SpendingConfig
from coevo.models.endpoint_policy.call_ledger import CallExpense, CallLedger, KeptAnswer
from coevo.utilities.errors import CoevoError

BOUND = SpendingConfig.model_validate({"budget": {"tokens": 1000}})
MOST, PAID = CallExpense(20, 30), CallExpense(18, 7)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


SAFE = KeptAnswer("go safe", True)


def call(ledger, name, answer=SAFE):
    assert ledger.reserve(name, MOST)
    ledger.settle(name, MOST, PAID, answer)


def test_what_was_answered_is_there_again_with_its_expense(tmp_path):
    ledger = CallLedger(tmp_path, BOUND)
    call(ledger, "a", KeptAnswer("go\nsafe \u00e9", False))
    call(ledger, "b", None)
    again = CallLedger(tmp_path, BOUND)
    assert again.answer("a") == KeptAnswer("go\nsafe \u00e9", False)
    assert again.answer("b") is None
    assert again.spent == ledger.spent == PAID + PAID


@given(texts=st.lists(TEXTS, min_size=1, max_size=4), cut=st.integers(0, 10_000))
def test_a_file_that_ends_anywhere_has_every_whole_answer_and_counts_what_was_begun(tmp_path_factory, texts, cut):
    directory = tmp_path_factory.mktemp("ledger")
    ledger, path = CallLedger(directory, BOUND), directory / "calls-000001.jsonl"
    ends = []
    for number, text in enumerate(texts):
        call(ledger, f"{number}", KeptAnswer(text, True))
        ends.append(path.stat().st_size)
    head = path.read_bytes().index(b"\n") + 1  # the head is written whole or not at all
    end = max(head, cut % (ends[-1] + 1))
    path.write_bytes(path.read_bytes()[:end])
    kept = sum(size <= end for size in ends)
    for _ in range(2):  # a second opening counts nothing twice
        again = CallLedger(directory, BOUND)
        found = [again.answer(f"{number}") for number in range(len(texts))]
        assert found == [KeptAnswer(text, True) if at < kept else None for at, text in enumerate(texts)]
        spent = again.spent.tokens - kept * PAID.tokens
        assert spent in (0, MOST.tokens)
    call(again, "later")
    assert CallLedger(directory, BOUND).answer("later") is not None


def has(ledger, names):
    return "".join(name for name in names if ledger.answer(name))


def test_answers_stay_until_their_revision_is_committed_and_the_expense_for_good(tmp_path):
    """A revision is committed beside the calls of the next one, so that it is known when that one ends."""
    ledger = CallLedger(tmp_path, BOUND)
    for name in "abc":
        call(ledger, name)
        ledger.turn_over()
    for opened in (ledger, CallLedger(tmp_path, BOUND)):
        assert has(opened, "abc") == "c"
        assert opened.spent.tokens == 3 * PAID.tokens
    assert len([*tmp_path.iterdir()]) == 2


def test_answers_of_a_revision_that_is_killed_again_and_again_stay(tmp_path):
    for name in "abc":  # each time it gets further, ends, and is killed before its commit
        ledger = CallLedger(tmp_path, BOUND)
        call(ledger, name)
        ledger.turn_over()
    ledger = CallLedger(tmp_path, BOUND)
    assert has(ledger, "abc") == "abc"
    ledger.turn_over()
    assert has(ledger, "abc") == "abc"
    call(ledger, "next")
    ledger.turn_over()  # it is committed
    assert has(ledger, ("a", "b", "c", "next")) == "next"


def test_answers_that_are_given_again_stay(tmp_path):
    ledger = CallLedger(tmp_path, BOUND, forgets=False)
    for name in "abc":
        call(ledger, name)
        ledger.turn_over()
    assert all(CallLedger(tmp_path, BOUND, forgets=False).answer(name) for name in "abc")


def test_calls_wait_for_what_others_may_take_and_the_last_goes_beyond_alone(tmp_path):
    bound = SpendingConfig.model_validate({"budget": {"tokens": 60}})
    ledger = CallLedger(tmp_path, bound)
    assert ledger.reserve("a", MOST)
    assert not ledger.reserve("b", MOST)
    ledger.settle("a", MOST, PAID, KeptAnswer("x", True))
    assert not ledger.exhausted()
    assert ledger.reserve("b", MOST) and not ledger.reserve("c", CallExpense(1, 0))
    ledger.settle("b", MOST, MOST, KeptAnswer("x", True))
    assert ledger.exhausted().startswith("policy.budget.tokens=60 is spent (75)")
    assert not ledger.reserve("c", CallExpense(1, 0))


def test_a_run_from_another_machine_counts_what_its_revision_states(tmp_path):
    ledger = CallLedger(tmp_path, BOUND)
    for _ in range(2):
        ledger.raise_to(CallExpense(300, 40))
        assert CallLedger(tmp_path, BOUND).spent == CallExpense(300, 40)
    ledger.raise_to(CallExpense(10, 400))
    assert ledger.spent == CallExpense(300, 400)


def test_nothing_is_written_before_a_call(tmp_path):
    CallLedger(tmp_path / "calls", BOUND)
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize(
    "line", [b"{}", b"mug", b'{"event":"answered","text":7}', b'{"event":"paid","prompt_tokens":-1}']
)
def test_a_file_that_is_no_ledger_is_refused_by_name_and_left_as_it_is(tmp_path, line):
    path = tmp_path / "calls-000001.jsonl"
    path.write_bytes(line + b"\n")
    with pytest.raises(CoevoError, match=r"calls-000001\.jsonl: not a ledger") as caught:
        CallLedger(tmp_path, BOUND)
    assert "\n" not in f"{caught.value}" and path.read_bytes() == line + b"\n"
