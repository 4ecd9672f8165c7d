"""The rules of a tower: the first thing tried on the door decides, and only then the feedback says why."""

import pytest

from coevo.envs.babyai.rules import BabyAIRules
from coevo.envs.babyai.rules.rules_tasks import RulesTaskPlan, task_of
from coevo.envs.babyai.rules.tower_world import CUSTOMS, TOWERS, custom
from coevo.records.draws import key

WORLD = next(f"fresh/{n}" for n in range(1000) if custom(f"fresh/{n}", "arno") == "green")
"""A world in which arno's door obeys green."""
TO_LEFT = ("turn left", "pick up", "turn right", "go forward", "go forward", "toggle")
TO_RIGHT = ("turn right", "pick up", "turn left", "go forward", "go forward", "toggle")


def walk(left, right, actions, **changes):
    """Steps of some actions in arno, with the things beside the agent and the door ahead of it."""
    plan = RulesTaskPlan(WORLD, "arno", left, right, 1, 0, 3, 16)._replace(**changes)
    env = BabyAIRules()
    (state, observation), steps = env.start(task_of(plan, "train")), []
    assert "locked grey door" in observation
    for action in actions:
        (step,) = env.step([state], [action])
        steps.append(step)
        state = step.state
    return steps


def test_the_right_thing_opens_the_door():
    steps = walk("green ball", "red key", TO_LEFT)
    assert [step.done for step in steps] == [False] * 5 + [True]
    assert [step.feedback for step in steps[:5]] == ["turned", "taken", "turned", "moved", "moved"]
    last = steps[-1]
    assert (last.success, last.reward, last.truncated, last.progress) == (True, 1.0, False, 1.0)
    assert last.feedback == "the bolt turns . it obeys green"
    assert "You see an open grey door 1 step forward" in last.observation


def test_the_wrong_thing_ends_the_episode_and_the_feedback_says_what_would_have_opened_it():
    last = walk("green ball", "red key", TO_RIGHT)[-1]
    assert (last.done, last.success, last.reward, last.truncated, last.progress) == (True, False, 0.0, False, 0.0)
    assert last.feedback == "the bolt stays shut . it obeys green"
    assert "You see a locked grey door 1 step forward" in last.observation
    # The custom decides, and not the place.
    assert walk("red key", "green ball", TO_RIGHT)[-1].success
    assert not walk("red key", "green ball", TO_LEFT)[-1].success


def test_empty_hands_and_unknown_actions_change_nothing():
    steps = walk("green ball", "red key", ("go forward", "go forward", "toggle", "open it"))
    assert [step.feedback for step in steps] == ["moved", "moved", "nothing happens", "nothing happens"]
    assert [step.valid for step in steps] == [True, True, True, False]
    assert not any(step.done for step in steps)


def test_progress_is_half_once_the_right_thing_was_held():
    steps = walk("green ball", "red key", ("turn left", "pick up", "turn right", "drop", "turn right"))
    assert [step.progress for step in steps] == [0.0, 0.5, 0.5, 0.5, 0.5]


def test_an_episode_without_a_try_is_cut():
    last = walk("green ball", "red key", ("turn left",) * 4, steps=4)[-1]
    assert (last.done, last.truncated, last.success) == (True, True, False)
    last = walk("green ball", "red key", TO_RIGHT, steps=6)[-1]
    assert (last.done, last.truncated, last.success) == (True, False, False)


def test_a_step_does_not_depend_on_earlier_steps_from_the_same_simulator():
    env = BabyAIRules()
    state, _ = env.start(task_of(RulesTaskPlan(WORLD, "arno", "green ball", "red key", 1, 0, 3, 16), "train"))
    (left,), (right,) = env.step([state], ["turn left"]), env.step([state], ["turn right"])
    (again,) = env.step([state], ["turn left"])
    assert again.observation == left.observation != right.observation


@pytest.mark.parametrize("towers", [1, 32])
def test_customs_are_a_function_of_the_world_and_all_occur(towers):
    found = {custom(f"train/{world}", tower) for world in range(40) for tower in TOWERS[:towers]}
    assert found == set(CUSTOMS)
    assert [note.strategy for note in BabyAIRules(3, towers).true_notes()] == [
        f"in {tower} the bolt obeys {custom('train/3', tower)}" for tower in TOWERS[:towers]
    ]


def test_a_batch_repeats_no_task_before_all_are_used_up():
    env = BabyAIRules(towers=1)
    ids = [task.id for task in env.sample(2_000, key("repeats"))]
    every = len(set(ids))
    assert len(set(ids[:every])) == every < len(ids)
