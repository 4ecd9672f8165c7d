"""Playing the environment's own expert: what can be reached with what a prompt holds."""

from collections.abc import Sequence

from configs.rollout import RolloutConfig
from envs.base import Environment
from records.demonstration import Answer, Moment, PastTurn
from records.draws import Key, extend
from records.task import Task

MAX_TURNS = RolloutConfig().max_turns
REPEATS = 8
"""Episodes of each task where the expert guesses; its episodes cost nearly nothing."""


def expert_success(env: Environment[object], tasks: Sequence[Task], key: Key, max_turns: int = MAX_TURNS) -> float:
    """Success rate of the expert that is told no lessons, over several episodes a task where it guesses."""
    repeats = REPEATS if env.expert_guesses else 1
    episodes = [
        play_expert(env, task, (), extend(key, task.id, n), max_turns) for task in tasks for n in range(repeats)
    ]
    return sum(shown[-1][2] for shown in episodes) / len(episodes)


def play_expert(
    env: Environment[object], task: Task, lessons: tuple[str, ...], key: Key, max_turns: int = MAX_TURNS
) -> list[tuple[Moment, Answer, bool]]:
    """One episode of the expert, of at most ``max_turns``: each moment, its answer, and whether that solved the task.

    An environment need not limit its episodes.
    """
    state, observation = env.start(task)
    shown: list[tuple[Moment, Answer, bool]] = []
    history: tuple[PastTurn, ...] = ()
    done = False
    while not done and len(shown) < max_turns:
        moment = Moment(task.instruction, lessons, history, observation)
        answer = env.advise(state, moment, extend(key, len(history)))
        (step,) = env.step([state], [answer.action])
        shown.append((moment, answer, step.success))
        history = (*history, PastTurn(observation, answer.action, step.feedback))
        state, observation, done = step.state, step.observation, step.done
    return shown
