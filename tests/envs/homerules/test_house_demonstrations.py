from itertools import pairwise
from math import sqrt

import pytest

from coevo.envs.homerules import HomeRules
from coevo.envs.homerules.house_conventions import facts
from coevo.envs.homerules.house_world import HOUSES, OTHER_HOUSES, read_instruction
from coevo.records.draws import key

MANY = HomeRules().demonstrations(600, 0, key("many"))


def openings(demonstrations):
    return [shown.moment for shown in demonstrations if not shown.moment.history]


def test_there_are_as_many_episodes_and_drills_as_asked_for():
    shown = HomeRules().demonstrations(7, 5, key(0))
    drills = [one for one in shown if " recite " in one.moment.instruction]
    assert len(drills) == 5
    assert len(openings(one for one in shown if one not in drills)) == 7


def texts(moment):
    return [note.text for note in moment.lessons]


@pytest.mark.parametrize("level", [1, 2])
def test_demonstrations_are_what_the_expert_answers(level):
    env = HomeRules(level)
    for shown in env.demonstrations(60, 0, key("expert")):
        if "guess" not in shown.answer.thought:
            assert env.expert(shown.moment, key("any")) == shown.answer
        assert len(f"{shown.answer.thought} {shown.answer.action}".split()) <= 6


def test_worlds_are_never_the_one_that_is_trained_in():
    said = [lesson for moment in openings(MANY) for lesson in texts(moment) if " in " in lesson]
    true = [lesson == facts(1, "train/0", lesson.split()[0]).lesson(lesson.split()[1]) for lesson in said]
    # A place of another world agrees by chance one time in four.
    assert abs(sum(true) / len(true) - 1 / 4) < 4 * sqrt(3 / 16 / len(true))


def test_lessons_are_of_one_house_and_never_more_than_four_and_every_house_is_shown():
    assert {read_instruction(moment.instruction).house for moment in openings(MANY)} == set(HOUSES + OTHER_HOUSES)
    for moment in openings(MANY):
        goal = read_instruction(moment.instruction)
        assert {lesson.split()[0] for lesson in texts(moment)} <= {goal.house}
        assert len(set(moment.lessons)) == len(moment.lessons) <= 4


def test_prompts_hold_all_one_or_none_of_the_relevant_facts():
    kinds = {"all": 0, "one": 0, "none": 0}
    treated = [moment for moment in openings(MANY) if read_instruction(moment.instruction).family != "put"]
    for moment in treated:
        goal = read_instruction(moment.instruction)
        told = {lesson.split()[1] for lesson in texts(moment) if " not " not in lesson}
        kinds[("none", "one", "all")[len(told & set(goal.subjects))]] += 1
    shares = {kind: count / len(treated) for kind, count in kinds.items()}
    assert shares == pytest.approx({"all": 0.4, "one": 0.3, "none": 0.3}, abs=4 * sqrt(0.24 / len(treated)))


def test_warnings_and_empty_prompts_are_among_them():
    lessons = [texts(moment) for moment in openings(MANY)]
    assert any(" not " in lesson for told in lessons for lesson in told)
    assert 0.02 < sum(not told for told in lessons) / len(lessons) < 0.15


def test_some_lessons_are_false_and_obeyed():
    misled = [
        shown
        for shown, after in pairwise(MANY)
        if " in " in shown.answer.thought and after.moment.history and after.moment.history[-1].feedback == "nothing"
    ]
    told = [shown for shown in MANY if not shown.moment.history and " in " in shown.answer.thought]
    share = len(misled) / len(told)
    assert abs(share - 0.125) < 4 * sqrt(0.125 * 0.875 / len(told))


@pytest.mark.parametrize("level", [1, 2])
def test_a_drill_asks_back_six_lessons_among_two_absent_ones(level):
    for drill in HomeRules(level).demonstrations(0, 20, key("drills")):
        house, asked = drill.moment.instruction.removeprefix("house ").split(" . recite ")
        recited = drill.answer.thought.split(" . ")
        assert [said.split()[:2] for said in recited] == [[house, subject] for subject in asked.split()]
        told = [said for said in recited if said.split()[2] != "guess"]
        assert len(recited) == 8
        assert len(told) == 6
        assert sorted(told) == sorted(texts(drill.moment))
        assert not {said.split()[1] for said in recited if said not in told} & {
            lesson.split()[1] for lesson in texts(drill.moment)
        }


def test_drills_ask_in_another_order():
    drills = HomeRules().demonstrations(0, 20, key("order"))
    told = [[said for said in drill.answer.thought.split(" . ") if "guess" not in said] for drill in drills]
    assert sum(said != texts(drill.moment) for said, drill in zip(told, drills, strict=True)) >= 18


def test_extra_lessons_are_true_of_the_house_and_about_other_things():
    usual, more = (HomeRules(extra_lessons=extra).demonstrations(60, 0, key("extra")) for extra in (0, 5))
    assert len(openings(usual)) == len(openings(more))
    for before, after in zip(openings(usual), openings(more), strict=True):
        assert before.instruction == after.instruction
        assert set(before.lessons) <= set(after.lessons)
        assert len(after.lessons) <= 8
    assert max(len(moment.lessons) for moment in openings(more)) == 8
