from timeit import timeit

import pytest

from coevo.envs.homerules import HomeRules
from coevo.records.draws import generator, key


def words(*texts):
    return {word for text in texts for word in text.split()}


@pytest.mark.parametrize("level", [1, 2])
def test_every_word_that_is_ever_said_is_in_the_vocabulary(level, play):
    env = HomeRules(level)
    said = words(*(lesson for lessons in env.probe(100, key(0)).wrong for lesson in lessons))
    for shown in env.demonstrations(150, 50, key("fuzz")):
        moment = shown.moment
        said |= words(moment.instruction, moment.observation, shown.answer.thought, shown.answer.action)
        said |= words(*(note.text for note in moment.lessons), *(text for turn in moment.history for text in turn))
    for name in env.panels:
        said |= words(*(entry.strategy for entry in env.panel_bank(name) or ()))
    for task in env.sample(100, key("played")):
        steps = play(env, task, [], key(task.id)) + wander(env, task)
        said |= words(task.instruction, *(text for step in steps for text in (step.observation, step.feedback)))
    assert said == set(env.vocabulary)
    assert len(said) == len(env.vocabulary) < 115


def wander(env, task):
    rng, (state, _), steps = generator(key(task.id)), env.start(task), []
    for action in (f"go {state.setting.storage}", f"take {task.data['object']}", "put desk", "put rack"):
        noise = " ".join(rng.choice(env.vocabulary, 2))
        steps += env.step([state], [action if rng.random() < 0.8 else noise])
        state = steps[-1].state
    return steps


def test_the_expert_never_earns_more_than_the_reward_range(play):
    env = HomeRules()
    for index, task in enumerate(env.sample(50, key("reward"))):
        steps = play(env, task, [], key(index))
        assert env.reward_range[0] <= sum(step.reward for step in steps) <= env.reward_range[1]
        assert steps[-1].reward == steps[-1].success


def test_stepping_costs_no_more_than_a_few_hashes():
    # As a ratio, since the machine is shared: the reference is one keyed draw, about 20 microseconds.
    env = HomeRules()
    states = [env.start(task)[0] for task in env.sample(200, key("speed"))]
    stepping = min(timeit(lambda: env.step(states, ["go safe"] * 200), number=5) for _ in range(3))
    drawing = min(timeit(lambda: [generator(key(index)) for index in range(200)], number=5) for _ in range(3))
    assert stepping < 2 * drawing
