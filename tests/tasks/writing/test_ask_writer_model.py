"""Asking: nothing is asked twice, within a budget, and a resumed run has the same answers and the same cost."""

from dataclasses import replace

import pytest
from support.answering import Scripted

from coevo.configs.bank.writer_model_config import PolicyWriterModelConfig
from coevo.memory.writers.writer import Reject
from coevo.models.writer_models.request_pace import Traffic
from coevo.records.writing import Credit, Drawn, Question, Reply, Rewarded
from coevo.tasks.writing.artifact import KeptWriting, read_rejects, read_writing, write_writing
from coevo.tasks.writing.ask_writer_model import Writing
from coevo.tasks.writing.journal import Journal
from coevo.utilities.errors import CoevoError


def question(number, episode=None):
    return Question("contrast", f"t{number}", (episode or f"e{number}",), "system", f"{number}")


def questions(*numbers):
    return [question(number) for number in numbers]


class Run:
    """Writing of a run that may be killed."""

    def __init__(self, directory, writer_model=None, **config):
        self.directory, self.writer_model, self.warnings = directory, writer_model or Scripted(), []
        self.config = PolicyWriterModelConfig(**config)

    def open(self, revision=1, kept=None):
        journal = Journal(self.directory / "journal", revision)
        return Writing(self.writer_model, self.config, journal, kept or KeptWriting(), self.warnings.append)

    @property
    def asked(self):
        return [int(each.user) for each in self.writer_model.asked]


def texts(replies):
    return [reply.text for reply in replies]


def test_replies_are_in_the_order_of_the_questions_and_equal_ones_are_asked_once(tmp_path):
    run = Run(tmp_path)
    assert texts(run.open().ask(1, questions(2, 1, 2))) == ["contrast 2", "contrast 1", "contrast 2"]
    assert sorted(run.asked) == [1, 2]


def test_a_killed_run_asks_only_for_what_is_missing(tmp_path):
    def die(asked):
        if asked.user == "1":
            raise KeyboardInterrupt
        return Reply(asked.user, True, 10, 1)

    run = Run(tmp_path, Scripted(die))
    with pytest.raises(KeyboardInterrupt):
        run.open().ask(1, questions(0, 1, 2, 3))
    run.writer_model = Scripted(lambda asked: Reply(asked.user, True, 10, 1))
    again = run.open()
    assert texts(again.ask(1, questions(0, 1, 2, 3))) == ["0", "1", "2", "3"]
    assert run.asked == [1, 0]
    assert again.cost() == {
        "cost/writing/questions": 4,
        "cost/writing/prompt_tokens": 40,
        "cost/writing/answer_tokens": 4,
    }


def test_a_killed_run_keeps_bit_for_bit_what_an_uninterrupted_one_does(tmp_path):
    first, second = (Run(tmp_path / name) for name in "ab")
    for run in (first, second):
        run.directory.mkdir()
    whole = first.open()
    whole.ask(1, questions(*range(6)))
    second.open().ask(1, questions(4, 2, 0))
    resumed = second.open()
    resumed.ask(1, questions(*range(6)))
    for run, made in ((first, whole), (second, resumed)):
        write_writing(made.freeze(1, ["e1", "e4"]), run.directory)
    contents = [
        [path.read_bytes() for path in sorted((run.directory / "writing").iterdir())] for run in (first, second)
    ]
    assert contents[0] == contents[1]


def test_answers_that_a_later_firing_needs_are_kept_and_the_others_go(tmp_path):
    run = Run(tmp_path)
    writing = run.open()
    writing.ask(1, questions(1, 2))
    write_writing(writing.freeze(1, ["e2"]), tmp_path)
    kept = read_writing(tmp_path / "writing")
    assert len(kept.answers) == 2
    later = run.open(2, kept)
    assert later.cost()["cost/writing/questions"] == 0
    run.writer_model.asked.clear()
    later.ask(2, questions(2, 3))
    assert run.asked == [3]
    # An answer costs in the revision in which it arrived.
    assert later.cost()["cost/writing/questions"] == 1
    assert {each.episodes for each in later.freeze(2, ["e2"]).answers} == {("e2",), ("e3",)}
    assert {each.episodes for each in later.freeze(3, ["e3"]).answers} == {("e3",)}


def test_questions_without_an_answer_have_a_fault_are_reported_and_asked_again(tmp_path):
    faulty = Scripted(lambda asked: Reply("", False, fault="timed out") if asked.user in "13" else Reply("a", True))
    run = Run(tmp_path, faulty)
    writing = run.open()
    assert [reply.fault for reply in writing.ask(1, questions(1, 2, 3))] == ["timed out", "", "timed out"]
    assert run.warnings == ["2 of 3 questions of the writer were not answered: timed out"]
    run.writer_model.asked.clear()
    writing.ask(1, questions(1, 2, 3))
    assert sorted(run.asked) == [1, 3]


def test_a_spent_budget_ends_the_asking_and_stays_spent(tmp_path):
    run = Run(tmp_path, budget={"tokens": 300})
    writing = run.open()
    replies = writing.ask(1, questions(1, 2, 3, 4, 5))
    assert len(run.asked) == 3
    spent = "the budget of 300 tokens is spent: raise bank.writer.model.budget.tokens"
    assert [reply.fault for reply in replies] == ["", "", "", spent, spent]
    assert run.warnings == [f"2 of 5 questions of the writer were not answered: {spent}"]
    write_writing(writing.freeze(1, []), tmp_path)
    later = run.open(2, read_writing(tmp_path / "writing"))
    assert {reply.fault for reply in later.ask(2, questions(6, 7))} == {spent}
    assert len(run.asked) == 3


def test_no_more_questions_are_asked_side_by_side_than_the_budget_pays_for(tmp_path):
    batches = []

    class Batched(Scripted):
        def replies(self, questions):
            batches.append(len(questions))
            return super().replies(questions)

    run = Run(tmp_path, Batched(), budget={"tokens": 1000}, max_new_tokens=200)
    writing = run.open()
    replies = writing.ask(1, questions(*range(20)))
    # At most 3 tokens of a prompt and 200 of an answer: 4 questions cost no more than 1000. Each took 120.
    assert batches == [4, 2, 1, 1, 1]
    assert [bool(reply.text) for reply in replies] == [True] * 9 + [False] * 11
    assert writing.cost()["cost/writing/questions"] == 9


def test_a_budget_of_money_counts_prompts_and_answers_by_their_prices(tmp_path):
    # 100 tokens at 2 and 20 tokens at 10 per million are 0.0004.
    run = Run(tmp_path, budget={"cost": 0.0007}, price={"prompt": 2.0, "answer": 10.0})
    faults = [reply.fault for reply in run.open().ask(1, questions(1, 2, 3))]
    assert (len(run.asked), faults[-1]) == (2, "the budget of 0.0007 is spent: raise bank.writer.model.budget.cost")


def test_what_a_panel_is_asked_about_costs_and_is_not_kept(tmp_path):
    run = Run(tmp_path, budget={"tokens": 200})
    writing = run.open()
    assert texts(writing.aside(1, questions(1, 2))) == ["contrast 1", "contrast 2"]
    lines = Journal(tmp_path / "journal", 1).answers
    assert [(each.purpose, each.task, each.episodes, each.reply.text) for each in lines] == [("aside", "", (), "")] * 2
    assert writing.ask(1, questions(3))[0].fault
    assert writing.freeze(1, ["e1"]).answers == ()
    expense = {"questions": 2, "prompt_tokens": 200, "answer_tokens": 40}
    assert writing.cost_aside() == {f"cost/evaluation/{name}": count for name, count in expense.items()}
    assert writing.cost_aside() == {}
    assert writing.cost()["cost/writing/questions"] == 0


@pytest.mark.parametrize("held_out", [False, True])
def test_a_kill_refunds_nothing_of_a_budget(tmp_path, held_out):
    """Without a budget nothing of it is kept: the resumed run asks again, and its state is as if it had not died."""
    refusing = Scripted(lambda asked: Reply("", False, 100, 20, "" if held_out else "the model refuses to answer"))
    for budget, counted in ((None, 0), ({"tokens": 1_000}, 120)):
        run = Run(tmp_path, refusing, **({} if budget is None else {"budget": budget}))
        ask = (lambda writing: writing.aside) if held_out else (lambda writing: writing.ask)
        ask(run.open())(1, questions(1))
        again = run.open()
        spent = again.freeze(1, []).spent
        assert spent.prompt_tokens + spent.answer_tokens == counted
        assert sum((again.cost_aside() if held_out else again.cost()).values()) == (121 if counted else 0)


def test_another_writer_model_is_asked_again(tmp_path):
    run = Run(tmp_path)
    run.open().ask(1, questions(1))
    run.config = PolicyWriterModelConfig(temperature=0.1)
    run.open().ask(1, questions(1))
    assert run.asked == [1, 1]
    run.config = PolicyWriterModelConfig(temperature=0.1, budget={"tokens": 10**6})
    run.open().ask(1, questions(1))
    assert run.asked == [1, 1]


def test_refused_parts_are_committed_with_their_revision(tmp_path):
    writing = Run(tmp_path).open()
    writing.refused([Reject("contrast", ("e1",), "long", "x" * 9)])
    write_writing(writing.freeze(1, []), tmp_path)
    assert '"reason": "long"' in (tmp_path / "writing" / "rejects.jsonl").read_text()
    assert writing.freeze(2, []).rejects == ()
    assert read_rejects(tmp_path / "writing" / "rejects.jsonl") == [Reject("contrast", ("e1",), "long", "x" * 9)]


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", '{"purpose": 1, "episodes": [], "reason": "", "text": ""}', '{"episodes": [1]}', "\udcff"]
)
def test_refused_parts_that_are_not_as_coevo_writes_them_are_named(tmp_path, line):
    (tmp_path / "rejects.jsonl").write_text(f"{line}\n", encoding="utf-8", errors="surrogateescape")
    with pytest.raises(CoevoError, match="of the artifact writing is not as coevo writes it"):
        read_rejects(tmp_path / "rejects.jsonl")


PRICE = {"prompt": 2.0, "answer": 10.0}
"""Of 100 + 20 tokens: 0.0002 + 0.0002."""


def test_with_prices_a_part_has_its_money(tmp_path):
    writing = Run(tmp_path, price=PRICE).open()
    writing.ask(1, questions(1, 2, 3))
    writing.aside(1, questions(4))
    assert writing.cost()["cost/writing/money"] == pytest.approx(3 * 0.0004)
    assert writing.cost_aside()["cost/evaluation/money"] == pytest.approx(0.0004)
    assert writing.cost()["cost/writing/money"] == 0.0
    free = Run(tmp_path).open()
    free.ask(2, questions(5))
    assert not [name for name in free.cost() if "money" in name]


def test_requests_without_an_answer_are_counted_by_revision(tmp_path):
    writer_model = Scripted()
    assert Run(tmp_path, writer_model).open().requests() == {}
    writer_model.traffic = Traffic(5, 1, 1, 0)  # of an earlier opening
    writing = Run(tmp_path, writer_model).open()
    writer_model.traffic = replace(writer_model.traffic, requests=40, repeats=12, refusals=11, timeouts=3)
    sent = {"requests": 35.0, "repeats": 11.0, "refusals": 10.0, "timeouts": 3.0}
    assert writing.requests() == {f"cost/writer_model/{name}": count for name, count in sent.items()}
    writing.freeze(1, [])
    assert set(writing.requests().values()) == {0.0}


def test_held_out_questions_without_an_answer_are_reported(tmp_path):
    run = Run(tmp_path, Scripted(lambda asked: Reply("", False, fault="timed out" if asked.user == "2" else "")))
    assert [reply.fault for reply in run.open().aside(1, questions(1, 2))] == ["", "timed out"]
    assert run.warnings == ["1 of 2 questions of the writer were not answered: timed out"]


def test_a_refusal_counts_towards_the_budget_and_the_expense(tmp_path):
    refusing = Scripted(lambda asked: Reply("", False, 100, 20, "the model refuses to answer"))
    run = Run(tmp_path, refusing, budget={"tokens": 240})
    writing = run.open()
    writing.ask(1, questions(1, 2, 3, 4))
    assert len(run.asked) == 2
    assert list(writing.cost().values()) == [2, 200, 40]
    assert list(writing.cost().values()) == [0, 0, 0]


@pytest.mark.parametrize("name", ["answers.jsonl", "spent.json"])
@pytest.mark.parametrize("content", [None, b"\xff", b"[]\n", b"{}x\n"])
def test_an_artifact_from_elsewhere_is_read_or_refused_in_one_line(tmp_path, name, content):
    writing = Run(tmp_path).open()
    writing.ask(1, questions(1))
    write_writing(writing.freeze(1, ["e1"]), tmp_path)
    path = tmp_path / "writing" / name
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CoevoError) as refused:
        read_writing(tmp_path / "writing")
    assert "\n" not in str(refused.value)


def test_a_journal_that_is_none_is_refused_with_its_remedy(tmp_path):
    (tmp_path / "journal").write_text("{}\n")
    with pytest.raises(CoevoError, match=r"journal: .*: remove the file, and its questions are asked again"):
        Run(tmp_path).open()


DRAWN = Drawn((1, 2), (3, 4))


@pytest.mark.parametrize(("learns", "kept"), [(True, DRAWN), (False, None)])
def test_tokens_of_answers_are_kept_only_where_the_policy_learns_to_write(tmp_path, learns, kept):
    writer_model = Scripted(lambda asked: Reply(asked.user, True, 10, 1, drawn=DRAWN))
    writing = Writing(
        writer_model, PolicyWriterModelConfig(), Journal(tmp_path / "journal", 1), KeptWriting(), print, learns
    )
    (reply,) = writing.ask(1, questions(1))
    assert reply.drawn == kept
    assert [each.reply.drawn for each in Journal(tmp_path / "journal", 1).answers] == [kept]


def test_answers_that_wait_for_an_update_are_committed_and_read(tmp_path):
    waiting = (Rewarded(DRAWN, (Credit(0, 1, 0.25), Credit(1, 2, -1.0))), Rewarded(Drawn((1,), (2,)), (), 2.0))
    write_writing(KeptWriting(rewarded=waiting), tmp_path / "some")
    assert read_writing(tmp_path / "some" / "writing").rewarded == waiting
    write_writing(KeptWriting(), tmp_path / "none")
    assert not (tmp_path / "none" / "writing" / "rewarded.jsonl").exists()
    assert read_writing(tmp_path / "none" / "writing").rewarded == ()


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"drawn": {"prompt_ids": [1], "token_ids": ["a"]}, "credits": [], "weight": 1.0}',
        '{"drawn": {"prompt_ids": [1], "token_ids": [1]}, "credits": [], "weight": "1"}',
        '{"drawn": {"prompt_ids": [1], "token_ids": [1]}, "credits": [], "weight": 1.0, "more": 1.0}',
        '{"drawn": {"prompt_ids": [1], "token_ids": [1]}, "credits": [{"start": 0, "end": 1, "reward": NaN}]}',
        '{"drawn": {"prompt_ids": [1], "token_ids": [1]}, "credits": [{"start": 0, "end": 2, "reward": 1.0}]}',
        '{"drawn": {"prompt_ids": [1], "token_ids": [1]}, "credits": [{"start": 1, "end": 0, "reward": 1.0}]}',
    ],
)
def test_answers_that_wait_and_are_damaged_are_refused_in_one_line(tmp_path, line):
    write_writing(KeptWriting(rewarded=(Rewarded(DRAWN, ()),)), tmp_path)
    (tmp_path / "writing" / "rewarded.jsonl").write_text(f"{line}\n")
    with pytest.raises(CoevoError, match=r"rewarded\.jsonl of the artifact writing is not as coevo writes it"):
        read_writing(tmp_path / "writing")
