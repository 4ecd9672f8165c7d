"""Turns of a single episode without a policy, for experts, people and checks of an environment."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from coevo.envs.base import Environment, Guide, Step
from coevo.envs.failures import sound
from coevo.records.demonstration import Answer, Moment, Note, PastTurn
from coevo.records.task import Task

Act = Callable[[Any, Moment], Answer | None]
"""Function from a state, and the moment that shows it, to an answer; None ends the episode."""


@dataclass(frozen=True, slots=True)
class Acted:
    """One turn: the moment, the answer to it, and the step of the environment."""

    moment: Moment
    answer: Answer
    step: Step[Any]


def turn_by_turn(
    env: Environment[Any], task: Task, guide: Guide, act: Act, most: int, lessons: tuple[Note, ...] = ()
) -> Iterator[Acted]:
    """Play one episode of at most ``most`` turns: an environment may have no limit of its own.

    Args:
        env: the environment.
        task: task to attempt.
        guide: how to act in the environment, which every moment shows.
        act: chooses the actions.
        most: maximum number of turns.
        lessons: experience that every moment shows.

    Raises:
        EpisodeLostError: the environment failed to start or to step.
    """
    state, observation = sound(env.try_start([task])[0])
    history: tuple[PastTurn, ...] = ()
    done = False
    try:
        while not done and len(history) < most:
            moment = Moment(task.instruction, lessons, history, observation, guide.text, guide.tools, form=guide.answer)
            answer = act(state, moment)
            if answer is None:
                return
            step = sound(env.try_step([state], [answer.action])[0])
            yield Acted(moment, answer, step)
            history = (*history, PastTurn(observation, answer.action, step.feedback))
            state, observation, done = step.state, step.observation, step.done
    finally:
        env.release([state])
