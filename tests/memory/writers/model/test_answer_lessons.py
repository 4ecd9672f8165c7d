"""Lessons of a model as entries: their condition and their keywords."""

import pytest
from attempts import STOVE, attempt

from coevo.memory.writers.model.answer_lessons import Lesson, condition, entry
from coevo.memory.writers.model.transcript import shown


@pytest.mark.parametrize(
    ("when", "never", "said"),
    [
        ("", "", ""),
        ("the mug is cold.", "", "the mug is cold"),
        ("", "it is hot", "not when it is hot"),
        ("When it is cold", "if it is hot.", "it is cold; not when it is hot"),
        ("IF it is cold", "While it is hot", "it is cold; not when While it is hot"),
        ("When", "if", "When; not when if"),
    ],
)
def test_a_condition_says_when_a_lesson_applies_and_when_not(when, never, said):
    assert condition(when, never) == said


@pytest.mark.parametrize(
    ("text", "when", "keywords"),
    [
        ("heat the mug in lotus", "", "lotus heat mug"),
        ("open the safe", "the mug is cold", "lotus mug"),
        # Nothing that the instruction names: the words of the lesson.
        ("open the safe", "", "lotus open safe"),
    ],
)
def test_keywords_are_the_scope_and_what_the_lesson_says_of_the_task(text, when, keywords):
    (seen,) = shown([attempt("0", STOVE, success=False)], 10_000)
    made = entry(Lesson(text, when, seen, 4, {}), "pool", 7)
    assert (made.keywords, made.example, made.scope) == (keywords, "use stove", "pool")
    assert (made.created, made.edited, made.zone, made.level) == (7, 7, "strategy", "")
