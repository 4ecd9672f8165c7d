"""Turns of an expert's episodes as demonstrations, for environments whose experts play from a state."""

from collections.abc import Callable, Sequence

from coevo.envs.base import Environment, StateT
from coevo.records.demonstration import Answer, Demonstration, Moment, Note, PastTurn
from coevo.records.draws import Key, extend
from coevo.records.task import Task


def expert_turns(
    env: Environment[StateT],
    task: Task,
    draw: Key,
    lessons: Sequence[str] = (),
    advise: Callable[[StateT, Moment, Key], Answer] | None = None,
) -> list[Demonstration]:
    """Moments and answers of one episode of the environment's expert.

    Args:
        env: environment with ``advise``.
        task: task that is used neither for training nor for evaluation.
        draw: key of the expert's guesses.
        lessons: texts of the notes in every moment.
        advise: the expert; by default the environment's own.
    """
    (state, observation), guide, notes = env.start(task), env.guide(task).text, tuple(map(Note, lessons))
    shown, history, done = list[Demonstration](), tuple[PastTurn, ...](), False
    while not done:
        moment = Moment(task.instruction, notes, history, observation, guide)
        answer = (advise or env.advise)(state, moment, extend(draw, len(history)))
        shown.append(Demonstration(moment, answer))
        (step,) = env.step([state], [answer.action])
        history = (*history, PastTurn(observation, answer.action, step.feedback))
        state, observation, done = step.state, step.observation, step.done
    return shown
