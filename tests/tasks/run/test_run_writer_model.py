"""Tokens of stored answers are checked before a run trains on them, and a rollback does not refund what was paid."""

import shutil
from dataclasses import replace

import pytest
from support.small_run import build

from coevo.configs.load.load import load_recipe
from coevo.lineage.lineage import Lineage
from coevo.lineage.run_history import RunHistory
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.records.writing import Credit, Drawn, Question, Reply, Rewarded
from coevo.tasks.run.by_hand import HandMadeChange, commit_by_hand
from coevo.tasks.run.run_writer_model import check_endpoints, check_tokens, journal_after, spent_before
from coevo.tasks.writing.artifact import FOLDER, KeptWriting, write_writing
from coevo.tasks.writing.journal import Answered, Journal
from coevo.tasks.writing.spent import QuestionExpense
from coevo.utilities.errors import CoevoError


def answered(drawn):
    return Answered.of(1, Question("reflection", "t", ("e",), "s", "u"), "d", Reply("a", True, drawn=drawn))


@pytest.mark.parametrize("store", ["kept", "journal", "rewarded"])
@pytest.mark.parametrize(("largest", "size"), [(9, 10), (10, 10)])
def test_a_token_beyond_the_vocabulary_is_one_line(tmp_path, store, largest, size):
    drawn, journal = Drawn((1,), (largest, 2)), Journal(tmp_path / "journal", 1)
    kept = KeptWriting(
        answers=(answered(drawn),) if store == "kept" else (answered(None),),
        rewarded=(Rewarded(drawn, (Credit(0, 1, 1.0),)),) if store == "rewarded" else (),
    )
    if store == "journal":
        journal.append(answered(drawn))
        journal = Journal(tmp_path / "journal", 1)
    if largest < size:
        check_tokens(kept, journal, size)
        return
    with pytest.raises(CoevoError, match=r"has token 10, and the policy knows 10: roll back"):
        check_tokens(kept, journal, size)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A workspace with revisions 4 and 5 of a run, whose writer model was paid for 10 and 30 tokens by then."""
    root = tmp_path_factory.mktemp("paid") / "made"
    workspace, paths = Workspace(root), build(root)
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        for tokens in (10, 30):
            write_writing(KeptWriting(spent=QuestionExpense(1, tokens, 0)), paths.staging)
            head = lineage.history.head()
            lineage.commit({FOLDER: paths.staging / FOLDER}, dict(head.state), dict(head.observed))
    return root


@pytest.fixture
def paid(made, tmp_path):
    """A copy of the run."""
    workspace = Workspace(shutil.copytree(made, tmp_path / "copy"))
    paths = workspace.existing("first")
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        yield paths, lineage


def test_a_rollback_refunds_nothing(paid, tmp_path):
    paths, lineage = paid
    own = QuestionExpense(1, 30, 0)
    assert spent_before(lineage, lineage.history.head(), own, tmp_path / "scratch", pytest.fail) == own
    for _ in range(2):
        lineage.rollback(4, Bank(paths.bank))
        found = spent_before(
            lineage, lineage.history.head(), QuestionExpense(1, 10, 0), tmp_path / "scratch", pytest.fail
        )
        assert found == own


def test_that_a_dropped_revision_s_expense_is_unknown_is_reported(paid, tmp_path, monkeypatch):
    paths, lineage = paid
    lineage.rollback(4, Bank(paths.bank))
    monkeypatch.setattr(RunHistory, "retained", lambda _: [0, 4, 6])
    warned, own = [], QuestionExpense(1, 10, 0)
    assert spent_before(lineage, lineage.history.head(), own, tmp_path / "scratch", warned.append) == own
    assert warned == ["revision 5 was dropped, and what the writer model had cost with it: the budget forgets it"]


def test_the_expense_of_a_revision_that_is_repeated_is_its_own(paid, tmp_path, monkeypatch):
    paths, lineage = paid
    lineage.rollback(4, Bank(paths.bank))
    lineage.rollback(5, Bank(paths.bank))
    monkeypatch.setattr(RunHistory, "retained", lambda _: [0, 4, 7])
    own = QuestionExpense(1, 30, 0)
    assert spent_before(lineage, lineage.history.head(), own, tmp_path / "scratch", pytest.fail) == own


def test_a_change_by_hand_after_a_rollback_refunds_nothing_either(paid, tmp_path):
    paths, lineage = paid
    bank, own = Bank(paths.bank), QuestionExpense(1, 30, 0)
    lineage.rollback(4, bank)
    for _ in range(2):
        commit_by_hand(HandMadeChange(BankChange()), paths, bank, lineage)
        found = spent_before(
            lineage, lineage.history.head(), QuestionExpense(1, 10, 0), tmp_path / "scratch", pytest.fail
        )
        assert found == own


def test_answers_for_a_revision_that_a_rollback_made_instead_are_kept(paid):
    paths, lineage = paid
    journal = Journal(paths.journal, 6)
    for revision in (5, 6):
        journal.append(replace(answered(None), revision=revision, digest=f"{revision}"))
    lineage.rollback(4, Bank(paths.bank))
    kept = journal_after(lineage.history.head(), lineage, paths.journal).answers
    assert [(each.revision, each.digest) for each in kept] == [(7, "6")]


def test_a_budget_that_cannot_hold_is_refused_before_a_run():
    endless = "policy.extra={max_tokens: null}"
    check_endpoints(load_recipe("homerules-experience-only-endpoint", ["policy.budget=null", endless]))
    with pytest.raises(CoevoError, match=r"policy\.extra leaves answers without a limit"):
        check_endpoints(load_recipe("homerules-experience-only-endpoint", [endless]))
