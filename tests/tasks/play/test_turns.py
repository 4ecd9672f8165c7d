"""Turns of a single episode: what an agent is shown, and how an episode ends."""

import pytest

from coevo.envs.base import Guide
from coevo.envs.failures import EpisodeLostError
from coevo.envs.homerules import HomeRules
from coevo.records.demonstration import Answer, Note
from coevo.records.draws import key
from coevo.tasks.play.turns import turn_by_turn

GUIDE = Guide("go PLACE", ("go",), ({"type": "function", "function": {"name": "go"}},))
NOTES = (Note("mug in safe"),)


class Household(HomeRules):
    """A household that counts what is released, and may fail."""

    def __init__(self, fails=False):
        super().__init__()
        self.released, self.fails = 0, fails

    def step(self, states, actions):
        if self.fails:
            raise ValueError("it broke")
        return super().step(states, actions)

    def release(self, states):
        self.released += len(states)


def go(state, moment):
    return Answer("", "go safe")


def played(env, act, most=3):
    (task,) = env.sample(1, key("turns"))
    return list(turn_by_turn(env, task, GUIDE, act, most, NOTES))


def test_every_moment_shows_guide_tools_lessons_and_the_turns_before():
    first, second = played(Household(), go, 2)
    for turn in (first, second):
        assert (turn.moment.guide, turn.moment.tools, turn.moment.lessons) == (GUIDE.text, GUIDE.tools, NOTES)
    assert first.moment.history == ()
    assert second.moment.history == ((first.moment.observation, "go safe", first.step.feedback),)
    assert second.moment.observation == first.step.observation


@pytest.mark.parametrize(("last", "turns"), [(99, 3), (2, 2), (0, 0)])
def test_an_episode_ends_at_its_limit_or_where_the_agent_does_not_answer(last, turns):
    env = Household()
    shown = played(env, lambda state, moment: go(state, moment) if len(moment.history) < last else None)
    assert (len(shown), env.released) == (turns, 1)


def test_a_failure_of_the_environment_is_raised_and_its_state_is_released():
    env = Household(fails=True)
    with pytest.raises(EpisodeLostError, match="it broke"):
        played(env, go)
    assert env.released == 1
