"""Reflections in words: the question, the answer item by item, and marks in text."""

from dataclasses import replace

import pytest
from attempts import SAFE, STOVE, attempt
from support.answering import Asked
from support.evidence import evidence

from coevo.configs.bank.writer import ModelReflectionConfig
from coevo.memory.writers.model import words
from coevo.memory.writers.writer import writer_of
from coevo.records.task import BY_SCOPE
from coevo.records.writing import Reply

WON, LOST = attempt("0", SAFE, success=True), attempt("1", STOVE, success=False)
IN_WORDS = ModelReflectionConfig(type="model-reflection", induction="single", form="words")


def wrote(text, episode=LOST, config=IN_WORDS):
    ask = Asked(text)
    proposal = writer_of(config, BY_SCOPE).write(evidence([episode], revision=7, ask=ask))
    return proposal, ask.questions[0]


def test_a_question_has_task_steps_and_outcome():
    proposal, asked = wrote("% 1 / 3 ? no # 1 lotus mug in safe # 4 lotus heat not stove")
    assert (asked.system, asked.schema, asked.episodes) == ("reflect", "", (LOST.id,))
    assert asked.user == (
        "% house lotus . task heat mug to counter "
        "# 1 > at hall hold nothing . seen nothing : go safe : mug in safe "
        "# 2 > at safe hold nothing . seen safe : take mug : hold mug "
        "# 3 > at safe hold mug . seen safe : go stove : nothing "
        "# 4 > at stove hold mug . seen safe : use stove : heat not stove ? no"
    )
    assert [(entry.strategy, entry.example) for entry in proposal.entries] == [
        ("lotus mug in safe", "go safe"),
        ("lotus heat not stove", "use stove"),
    ]
    assert proposal.counts["accuracy"] == 1.0
    assert proposal.counts["potential"] == pytest.approx(1 / 3)


def test_told_nothing_leaves_out_the_outcome_and_the_last_feedback():
    _, asked = wrote("% 1 / 3 ? no", config=IN_WORDS.model_copy(update={"reveal_outcome": False}))
    assert asked.user.endswith("# 4 > at stove hold mug . seen safe : use stove ?")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("lotus mug in safe", "not_words"),
        ("% 4 / 3 ? no", "not_words"),
        ("% 0 / 0 ? no", "not_words"),
        ("% 1 / 65 ? no", "not_words"),
        ("% 1 / 999 ? no", "not_words"),
        ("% 1 / 3 ? no # lotus mug in safe", "shape"),
        ("% 1 / 3 ? no lotus mug in safe", "shape"),
        ("% 1 / 3 ? no # 9 lotus mug in safe", "unknown"),
        ("% 1 / 3 ? no # 1 willow plate", "ungrounded"),
        ("% 1 / 3 ? no # 1 lotus mug \uff1ceos\uff1e", "control"),
    ],
)
def test_what_was_not_asked_for_is_refused_by_itself(said, reason):
    proposal, _ = wrote(f"{said} # 4 lotus heat not stove" if reason != "not_words" else said)
    assert [reject.reason for reject in proposal.rejects] == [reason]
    assert [entry.strategy for entry in proposal.entries] == ["lotus heat not stove"] * (reason != "not_words")


def test_the_last_lesson_of_an_answer_that_was_cut_off_is_refused():
    fields, whole = words.read(Reply("% 1 / 3 ? no # 1 lotus mug in safe # 4 lotus", finished=False), LOST)
    assert len(fields["lessons"]) == 2
    assert not whole


def test_marks_in_text_do_not_act():
    turn = replace(LOST.turns[0], observation="a # 2 > b ? yes", feedback="<eos> % x")
    shown = words.attempt(replace(LOST, turns=(turn,)), 2000, verdict=True)
    assert shown.text == "% house lotus . task heat mug to counter # 1 > a 2 b yes : go safe : x ? no"


def test_an_answer_is_read_as_it_was_written():
    said = "% 2 / 3 ? yes # 1 lotus mug in safe"
    assert words.written(words.read(Reply(said, finished=True), WON)[0]) == said


@pytest.mark.parametrize(("done", "parts"), [(0, 1), (1, 1), (64, 64)])
def test_up_to_sixty_four_subtasks_are_read(done, parts):
    fields, whole = words.read(Reply(f"% {done} / {parts} ? yes", finished=True), WON)
    assert [part["done"] for part in fields["subtasks"]] == [True] * done + [False] * (parts - done)
    assert (fields["success"], fields["lessons"], whole) == (True, [], True)
    assert {f"{done}", f"{parts}"} < set(words.WORDS)
    assert "65" not in words.WORDS


def test_sixty_four_steps_are_shown():
    shown = words.attempt(replace(WON, turns=WON.turns * 13), 100_000, verdict=True)
    assert shown.steps == set(range(1, 65))


def test_steps_that_fit_exactly_are_all_shown():
    whole = words.attempt(WON, 10_000, verdict=True)
    assert words.attempt(WON, len(whole.text), verdict=True) == whole
    assert words.attempt(WON, len(whole.text) - 1, verdict=True).steps == {1, 3, 4, 5}


def test_the_situation_of_a_lesson_is_the_beginning_of_the_task():
    long = attempt("2", STOVE, success=False, instruction="heat mug " * 40)
    fields, _ = words.read(Reply("% 1 / 3 ? no # 1 lotus mug in safe", finished=True), long)
    assert fields["lessons"][0]["when"] == "heat mug " * 20  # 180 characters
