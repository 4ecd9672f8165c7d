"""States name points of an episode: any of them can be stepped from again, and actions repeated give it again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevo.envs.babyai import BabyAI
from coevo.envs.babyai.babyai_contents import ACTIONS, KINDS
from coevo.records.draws import key

ANY = st.lists(st.sampled_from((*ACTIONS, "go forward", "go forward", "dance")), min_size=1, max_size=30)


def task_of(kind, number=0, **options):
    return BabyAI((kind,), **options).sample(number + 1, key("episodes"))[number]


def walk(task, actions):
    """Every step of these actions, until the end."""
    env = BabyAI()
    state, _ = env.start(task)
    steps = []
    for action in actions:
        steps += env.step([state], [action])
        state = steps[-1].state
        if steps[-1].done:
            break
    return steps


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(tuple(KINDS)), ANY)
def test_any_episode_is_well_formed_and_repeats_itself(kind, actions):
    task = task_of(kind, distractors=3)
    steps = walk(task, actions)
    assert steps == walk(task, actions)
    progress = 0.0
    for count, step in enumerate(steps, start=1):
        assert len(step.state.actions) == count
        assert step.valid == (step.state.actions[-1] in ACTIONS)
        assert step.success == (step.reward > 0) == (step.progress == 1)
        assert step.done >= step.success
        assert progress <= step.progress
        progress = step.progress


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(tuple(KINDS)), ANY, st.data())
def test_an_earlier_state_can_be_stepped_from_again(kind, actions, data):
    task = task_of(kind, distractors=3)
    steps = walk(task, actions)
    index = data.draw(st.integers(0, len(steps) - 1))
    state = steps[index - 1].state if index else BabyAI().start(task)[0]
    before = repr(state)
    for other in ("turn left", "go forward"):
        BabyAI().step([state], [other])
    assert BabyAI().step([state], [steps[index].state.actions[-1]]) == [steps[index]]
    assert repr(state) == before


def test_turning_right_undoes_turning_left():
    env = BabyAI()
    state, seen = env.start(task_of("goto"))
    turned, back = walk(task_of("goto"), ["turn left", "turn right"])
    assert (turned.feedback, back.feedback) == ("turned", "turned")
    assert back.observation == seen != turned.observation
    assert env.step([state], ["turn left"]) == [turned]


def test_walking_on_ends_at_a_wall():
    steps = walk(task_of("putnext", distractors=0), ["go forward"] * 8)
    outcomes = [step.feedback for step in steps]
    assert outcomes[-1] == "blocked"
    assert outcomes == sorted(outcomes, reverse=True)
    assert all(step.valid for step in steps)
    assert steps[-1].observation == steps[-2].observation


NONE = ("", "dance", "go", "go forward now", "GO FORWARD", "turn left\n", "done")


@pytest.mark.parametrize("action", [*NONE, "drop", "toggle"])
def test_what_is_no_action_or_cannot_be_done_passes_the_time_and_changes_nothing(action):
    state, seen = BabyAI().start(task_of("goto"))
    (step,) = BabyAI().step([state], [action])
    assert step.valid == (action not in NONE)
    assert (step.feedback, step.observation, step.reward) == ("nothing happens", seen, 0)
    assert len(step.state.actions) == 1


def test_things_are_taken_and_dropped():
    env = BabyAI(("putnext",), 0)
    task = task_of("putnext", distractors=0)
    state, _ = env.start(task)
    feedback, seen = [], []
    while not feedback or feedback[-1] != "taken":
        (step,) = env.step([state], [env.advise(state, None, key(0)).action])
        state = step.state
        feedback.append(step.feedback)
        seen.append(step.observation)
    assert seen[-1].startswith("You carry a ")
    assert step.progress == 0.5
    (dropped,) = env.step([state], ["drop"])
    assert (dropped.feedback, dropped.progress) == ("dropped", 0.5)
    assert not dropped.observation.startswith("You carry")
    (again,) = env.step([dropped.state], ["pick up"])
    assert (again.feedback, again.observation) == ("taken", seen[-1])


def test_the_last_step_truncates_unless_it_solves():
    cut = walk(task_of("goto", steps=5), ["turn left"] * 9)
    assert [step.done for step in cut] == [False] * 4 + [True]
    assert (cut[-1].truncated, cut[-1].success, cut[-1].reward) == (True, False, 0)
    task = task_of("goto")
    plan = solution(task)
    last = walk(task_of("goto", steps=len(plan)), plan)[-1]
    assert (last.truncated, last.success, last.reward) == (False, True, pytest.approx(0.1))


def test_the_reward_falls_with_the_steps_taken():
    task = task_of("goto")
    plan = solution(task)
    assert walk(task, plan)[-1].reward == pytest.approx(1 - 0.9 * len(plan) / 64)
    assert walk(task, ["drop", *plan])[-1].reward == pytest.approx(1 - 0.9 * (len(plan) + 1) / 64)


def solution(task):
    env, actions = BabyAI(), []
    (state, _), done = env.start(task), False
    while not done:
        actions.append(env.advise(state, None, key(0)).action)
        (step,) = env.step([state], actions[-1:])
        state, done = step.state, step.done
    return actions
