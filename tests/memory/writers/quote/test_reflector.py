"""The built-in reflector on hand-written episodes."""

from dataclasses import replace

import pytest
from attempts import SAFE, STOVE, attempt

from coevo.memory.evidence.reflections import parse
from coevo.memory.writers.quote.reflection import reflect

WON = attempt("0", SAFE, success=True)
LOST = attempt("1", STOVE, success=False)


def lessons(episode, reference=None, most=9):
    return list(parse(reflect(episode, reference, most)).lessons)


@pytest.mark.parametrize("progress", [0.0, 1 / 3, 0.5, 2 / 3, 0.875, 1.0])
def test_the_potential_is_the_progress(progress):
    found = parse(reflect(replace(LOST, progress=progress), None, 1))
    assert found.potential == progress
    assert found.success is False


@pytest.mark.parametrize(("progress", "potential"), [(0.01, 0.01), (0.99, 0.99), (1 / 101, 0.01), (1 / 300, 0.0)])
def test_progress_is_divided_into_a_hundred_subtasks_at_most(progress, potential):
    found = parse(reflect(replace(WON, progress=progress), None, 1))
    assert found.potential == potential
    assert len(found.subtasks) <= 100


def test_without_progress_the_task_is_its_only_subtask():
    assert [parse(reflect(each, None, 1)).potential for each in (WON, LOST)] == [1.0, 0.0]


def test_single_induction_quotes_the_recipe_or_the_error_first():
    assert lessons(WON) == ["lotus mug in safe", "lotus heat with microwave"]
    assert lessons(LOST) == ["lotus heat not stove", "lotus mug in safe"]
    assert lessons(LOST, most=1) == ["lotus heat not stove"]


def test_a_success_beside_a_failure_tells_what_made_the_difference():
    assert lessons(WON, LOST) == ["lotus heat with microwave"]


def test_the_lesson_of_the_turn_at_which_they_part_belongs_to_the_difference():
    drawer = attempt("2", [(SAFE[0][0], "go drawer", "nothing")], success=False)
    assert lessons(WON, drawer) == lessons(drawer, WON) == ["lotus mug in safe", "lotus heat with microwave"]


def test_of_a_failure_the_last_lesson_comes_first_and_the_others_follow_in_order():
    turns = [SAFE[0], ("at safe hold nothing . seen safe", "go drawer", "counter near drawer"), *STOVE[1:]]
    told = lessons(attempt("2", turns, success=False))
    assert told == ["lotus heat not stove", "lotus mug in safe", "lotus counter near drawer"]


def test_a_failure_beside_a_success_tells_the_right_choice_and_what_it_found_out_itself():
    assert lessons(LOST, WON) == ["lotus heat with microwave", "lotus mug in safe"]


def test_a_success_at_another_task_teaches_only_what_concerns_both():
    other = attempt(
        "2",
        [tuple(text.replace("mug", "pan") for text in turn) for turn in SAFE],
        success=True,
        instruction="house lotus . task heat pan to desk",
    )
    assert lessons(LOST, other) == ["lotus heat with microwave", "lotus mug in safe"]
    elsewhere = replace(other, task=replace(other.task, scope="cedar"))
    assert lessons(LOST, elsewhere) == ["lotus heat not stove", "lotus mug in safe"]
