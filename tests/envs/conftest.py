"""An episode of the expert, for every test that needs one."""

import pytest

from coevo.records.demonstration import Moment, Note, PastTurn
from coevo.records.draws import extend


@pytest.fixture
def play():
    """``play(env, task, lessons, key)`` lets the expert play a task and returns its steps."""

    def run(env, task, lessons, key):
        (state, observation), history, steps = env.start(task), (), []
        while not (steps and steps[-1].done):
            moment = Moment(task.instruction, tuple(map(Note, lessons)), history, observation)
            answer = env.advise(state, moment, extend(key, len(history)))
            (step,) = env.step([state], [answer.action])
            history = (*history, PastTurn(observation, answer.action, step.feedback))
            state, observation = step.state, step.observation
            steps.append(step)
        return steps

    return run
