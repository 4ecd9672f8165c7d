"""The bot as expert: it solves what is played, and its advice is a function of the state."""

import pytest

from coevo.envs.babyai import BabyAI
from coevo.envs.babyai.babyai_contents import ACTIONS, KINDS
from coevo.envs.base import MissingPartError
from coevo.records.demonstration import Moment
from coevo.records.draws import key
from coevo.tasks.steps.evaluate import expert_success
from coevo.utilities.errors import CoevoError


@pytest.mark.parametrize("distractors", [0, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_it_solves_all_of_every_kind(kind, distractors, play):
    env = BabyAI((kind,), distractors)
    for task in (*env.sample(10, key("recorded")), *env.panel("held-out", 10).tasks):
        steps = play(env, task, [], key(0))
        assert steps[-1].success
        assert all(step.valid for step in steps)
        assert len(steps) <= KINDS[kind].steps / 2


def test_advice_depends_on_the_state_alone():
    env = BabyAI(("open",), 3)
    (task,) = env.sample(1, key("asked"))
    state, _ = env.start(task)
    states, advice, done = [], [], False
    while not done:
        states.append(state)
        advice.append(env.advise(state, None, key(0)))
        (step,) = env.step([state], [advice[-1].action])
        state, done = step.state, step.done
    assert [env.advise(state, None, key(1)) for state in reversed(states)] == advice[::-1]
    assert advice[0].action in ACTIONS


def test_it_goes_on_after_actions_that_it_would_not_have_taken():
    env = BabyAI(("pickup",), 3)
    for task in env.sample(10, key("astray")):
        (state, _), done = env.start(task), False
        for action in ("turn left", "go forward", "drop", "dance", "turn right"):
            (step,) = env.step([state], [action])
            state = step.state
        while not done:
            (step,) = env.step([state], [env.advise(state, None, key(0)).action])
            state, done = step.state, step.done
        assert step.success


def test_after_a_box_was_opened_it_does_not_know_and_the_episode_goes_on():
    env = BabyAI(("pickup",), 0)
    task = next(task for task in env.sample(50, key("boxes")) if "box" in task.instruction)
    state, _ = env.start(task)
    while (advice := env.advise(state, None, key(0))).action != "pick up":
        (step,) = env.step([state], [advice.action])
        state = step.state
    (opened,) = env.step([state], ["toggle"])
    assert (opened.feedback, opened.done) == ("opened", False)
    for _ in range(2):
        with pytest.raises(CoevoError, match="box was opened") as caught:
            env.advise(opened.state, None, key(0))
        assert "\n" not in str(caught.value)
    assert env.step([opened.state], ["turn left"])[0].feedback == "turned"
    assert env.advise(state, None, key(0)) == advice


def test_a_moment_alone_is_not_enough_for_it():
    with pytest.raises(MissingPartError, match="advise"):
        BabyAI().expert(Moment("go to the red ball", (), (), "You see a wall 1 step forward"), key(0))


def test_its_success_is_what_an_evaluation_compares_with():
    env = BabyAI()
    assert expert_success(env, env.sample(2, key("compared")), key(0)) == 1.0
