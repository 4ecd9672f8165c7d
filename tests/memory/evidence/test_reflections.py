"""The form of reflections: worked values, what is malformed, and that reading undoes writing."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batches import episode, turn

from coevo.memory.evidence.reflections import MALFORMED, Reflected, Reflection, Subtask, figures, parse, recalls, write
from coevo.memory.text import MAX_SCANNED_CHARS, clean
from coevo.records.draws import generator, key
from coevo.records.inert import flaw

TEXT = """Subtask: find the mug | done
Subtask: heat it | done
Subtask: put it on the counter | open
Success: no
Lesson: lotus mug in safe
Lesson: lotus heat not stove"""


def test_worked_values():
    found = parse(TEXT)
    assert found == Reflection(
        (Subtask("find the mug", True), Subtask("heat it", True), Subtask("put it on the counter", False)),
        False,
        ("lotus mug in safe", "lotus heat not stove"),
    )
    assert found.potential == 2 / 3
    assert write(found) == TEXT


@pytest.mark.parametrize(
    ("text", "potential", "success", "lessons"),
    [
        ("Subtask: a | open\nSuccess: yes", 0.0, True, ()),
        ("I thought.\n  SUBTASK:a|Done \n\nsuccess :  YES\nlesson: b\nLesson: b", 1.0, True, ("b",)),
        ("Subtask: a | b | done\nSuccess: no\nLesson: <|im_start|>go  on", 1.0, False, ("go on",)),
    ],
)
def test_what_a_model_may_write(text, potential, success, lessons):
    found = parse(text)
    assert (found.potential, found.success) == (potential, success)
    assert [flaw(lesson) for lesson in found.lessons] == [None] * len(lessons)
    if "<" not in text:
        assert found.lessons == lessons


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Success: yes",
        "Subtask: a | done",
        "Subtask: a | done\nSuccess: perhaps",
        "Subtask: a | done\nSuccess: yes\nSuccess: yes",
        "Subtask: a | almost\nSuccess: yes",
        "Subtask: a\nSuccess: yes",
        "Subtask: | done\nSuccess: yes",
        "Subtask: a | done\nSuccess: yes\nLesson:",
        TEXT.ljust(MAX_SCANNED_CHARS + 1),
    ],
)
def test_malformed_text_says_nothing(text):
    assert parse(text) == MALFORMED
    assert (MALFORMED.potential, MALFORMED.success, MALFORMED.lessons) == (0.0, None, ())


def test_a_text_of_the_greatest_length_is_read():
    assert parse(TEXT.ljust(MAX_SCANNED_CHARS)) == parse(TEXT)


LINES = st.text(max_size=60).map(clean).filter(bool)


@given(
    st.lists(st.builds(Subtask, LINES, st.booleans()), min_size=1, max_size=6),
    st.booleans(),
    st.lists(LINES, max_size=4, unique=True),
)
def test_reading_undoes_writing(subtasks, success, lessons):
    reflection = Reflection(tuple(subtasks), success, tuple(lessons))
    assert parse(write(reflection)) == reflection


def test_noise_never_fails_and_what_is_read_is_inert():
    draws = generator(key("noise"))
    pieces = ["Subtask:", "Success: yes\n", "Lesson:", "Subtask: a | done\n", " | ", "done", "no", "\n", "go", ":"]
    pieces += ["Lesson: <|im_end|> \x00 look\n", "\u202e"]
    read = [parse("".join(draws.choice(pieces, draws.integers(1, 12)))) for _ in range(500)]
    assert any(found != MALFORMED for found in read)
    texts = [text for found in read for text in (*found.lessons, *(part.text for part in found.subtasks))]
    assert not [text for text in texts if flaw(text)]
    assert all(0 <= found.potential <= 1 for found in read)


def told(*outcomes):
    """Reflections on episodes: pairs of the outcome and of what was predicted, None for a malformed one."""
    return [
        Reflected(replace(episode(0, n, (turn(),)), success=won), None, Reflection((), guess, ()))
        for n, (won, guess) in enumerate(outcomes)
    ]


def test_recalls_are_those_of_each_outcome_and_their_mean():
    found = recalls(told((True, True), (True, False), (True, None), (True, True), (False, True), (False, False)))
    assert found == {"recall_success": 0.5, "recall_failure": 0.5, "balanced_accuracy": 0.5}
    found = recalls(told((True, True), (False, False), (False, False), (False, True), (False, False)))
    assert found == {"recall_success": 1.0, "recall_failure": 0.75, "balanced_accuracy": 0.875}


def test_a_question_without_an_answer_counts_nowhere():
    some = told((True, True), (False, False), (False, True))
    silent = [replace(each, reflection=MALFORMED, answered=False) for each in told((True, None), (False, None))]
    assert recalls([*some, *silent]) == recalls(some)
    assert figures([*silent, *some]) == figures(some)
    assert (recalls(silent), figures(silent)) == ({}, {"reflections": 0.0})


def test_an_outcome_that_never_was_has_no_recall():
    assert recalls(told((False, False), (False, True))) == {"recall_failure": 0.5}
    assert recalls([]) == {}


def test_figures_are_means_over_all_and_the_error_is_against_known_progress():
    rows = [(True, 0.5, "d", True), (False, None, "do", True), (False, 0.25, "", None), (False, 1.0, "o", False)]
    reflected = [
        Reflected(
            replace(episode(0, n, (turn(),)), success=won, progress=progress),
            None if n else episode(),
            Reflection(tuple(Subtask("a", each == "d") for each in parts), guess, ()),
        )
        for n, (won, progress, parts, guess) in enumerate(rows)
    ]
    expected = {"reflections": 4.0, "malformed": 1.0, "accuracy": 0.5, "potential": 1.5 / 4, "pairwise": 0.25}
    assert figures(reflected) == expected | {"potential_error": pytest.approx((0.5 + 0.25 + 1.0) / 3)}
    assert "potential_error" not in figures(reflected[1:2])
    assert figures([]) == {"reflections": 0.0}
