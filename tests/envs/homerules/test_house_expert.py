from math import sqrt

import pytest

from coevo.envs.homerules import HomeRules
from coevo.envs.homerules.house_tasks import facts_of, goal_of
from coevo.records.demonstration import Answer, Moment, Note
from coevo.records.draws import generator, key

EPISODES = 1200
TOLD = {
    "blind": lambda task: [],
    "storage": lambda task: [facts_of(task).lesson(task.data["object"])],
    "appliance": lambda task: [facts_of(task).lesson(subject) for subject in goal_of(task).subjects[1:]],
    "both": lambda task: [facts_of(task).lesson(subject) for subject in goal_of(task).subjects],
    "wrong": lambda task: [
        facts_of(task).contrary(generator(key(task.id))).lesson(subject) for subject in goal_of(task).subjects
    ],
}


def success(play, level, lessons):
    env = HomeRules(level)
    tasks = env.sample(EPISODES, key("expert", level))
    return sum(play(env, task, lessons(task), key(index))[-1].success for index, task in enumerate(tasks)) / EPISODES


@pytest.mark.parametrize(
    ("level", "told", "expected"),
    [
        # Two looks among four places, then one of three appliances in three families of four; a false place costs one.
        (1, "blind", (1 / 2 + 3 / 6) / 4),
        (1, "storage", (1 + 3 / 3) / 4),
        (1, "appliance", 1 / 2),
        (1, "both", 1),
        (1, "wrong", (1 / 3) / 4),
        # Of sixteen places, 8 can be searched (put, look), 7 (heat, cool, clean) or 5 (puttwo).
        (2, "blind", (8 / 16 + 5 / 16 + 3 * 7 / 48 + 8 / 48) / 6),
        (2, "storage", (2 + 4 / 3) / 6),
        (2, "appliance", (8 + 5 + 21 + 8) / 16 / 6),
        (2, "both", 1),
        # A false place costs one look of those; the false appliance then loses four families.
        (2, "wrong", (7 / 15 + 4 / 15) / 6),
    ],
)
def test_a_level_is_worth_what_the_facts_are_worth(play, level, told, expected):
    tolerance = 3.5 * sqrt(expected * (1 - expected) / EPISODES)
    assert abs(success(play, level, TOLD[told]) - expected) <= tolerance


def test_every_action_of_the_expert_is_understood(play):
    for level in (1, 2):
        env = HomeRules(level)
        for index, task in enumerate(env.sample(100, key("valid"))):
            assert all(step.valid for step in play(env, task, TOLD["wrong"](task), key(index)))


HALL = "at hall hold nothing . seen nothing"
HOLDING = "at safe hold mug . seen safe"


@pytest.mark.parametrize(
    ("lessons", "observation", "answer"),
    [
        (["lotus mug in safe"], HALL, Answer("lotus mug in safe", "go safe")),
        (["maple mug in desk", "lotus mug in safe"], HALL, Answer("lotus mug in safe", "go safe")),
        (["lotus heat with oven"], HOLDING, Answer("lotus heat with oven", "use oven")),
        (["lotus heat not oven", "lotus heat with oven"], HOLDING, Answer("lotus heat with oven", "use oven")),
        (
            ["lotus heat not oven", "lotus heat not stove"],
            HOLDING,
            Answer("lotus heat guess microwave", "use microwave"),
        ),
        (["lotus mug in drawer"], "at safe hold nothing . seen safe . found safe", Answer("take", "take mug")),
        ([], "at desk hold nothing . seen safe . found safe", Answer("lotus mug in safe", "go safe")),
        ([], "at chest hold nothing . seen drawer cabinet chest", Answer("lotus mug guess safe", "go safe")),
        (
            ["lotus mug in chest"],
            "at chest hold nothing . seen drawer cabinet chest",
            Answer("lotus mug guess safe", "go safe"),
        ),
        ([], "at oven hold mug hot . seen safe", Answer("put", "put counter")),
        (["always look in the safe first, then use the oven"], HOLDING, None),
        (["lotus heat with fridge"], HOLDING, None),
    ],
)
def test_the_expert_obeys_what_it_was_told_and_goes_on_from_what_it_sees(lessons, observation, answer):
    moment = Moment("house lotus . task heat mug to counter", tuple(map(Note, lessons)), (), observation)
    answers = {HomeRules().expert(moment, key(draw)) for draw in range(40)}
    if answer is None:
        assert {said.action for said in answers} == {"use microwave", "use stove", "use oven"}
    else:
        assert answers == {answer}


def test_guesses_are_keyed_and_spread():
    moment = Moment("house lotus . task put mug to counter", (), (), HALL)
    expert = HomeRules().expert
    assert expert(moment, key(1)) == expert(moment, key(1))
    assert {expert(moment, key(draw)).action for draw in range(60)} == {
        f"go {p}" for p in ("drawer", "cabinet", "safe", "chest")
    }
