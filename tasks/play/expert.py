"""Playing the environment's own expert: an upper bound for agents with the same information."""

from collections.abc import Sequence
from functools import partial

from coevo.configs.rollout.rollout_config import MAX_TURNS
from coevo.envs.base import Environment
from coevo.envs.failures import EpisodeFailure, attempted, sound
from coevo.records.demonstration import Answer, Moment, Note
from coevo.records.draws import Key, extend
from coevo.records.task import Task
from coevo.tasks.play.turns import turn_by_turn

REPEATS = 8
"""Episodes per task if the expert guesses; they cost almost nothing."""


def expert_success(env: Environment[object], tasks: Sequence[Task], key: Key, max_turns: int = MAX_TURNS) -> float:
    """Success rate of the scripted expert without notes, over several episodes per task if it guesses.

    Episodes that the environment loses are left out; 0 if it loses all.
    """
    repeats = REPEATS if env.expert_guesses else 1
    episodes = [
        attempted(partial(play_expert, env, task, (), extend(key, task.id, n), max_turns))
        for task in tasks
        for n in range(repeats)
    ]
    solved = [shown[-1][2] for shown in episodes if not isinstance(shown, EpisodeFailure)]
    return sum(solved) / max(1, len(solved))


def play_expert(
    env: Environment[object], task: Task, lessons: tuple[str, ...], key: Key, max_turns: int = MAX_TURNS
) -> list[tuple[Moment, Answer, bool]]:
    """Play one expert episode of at most ``max_turns``; return each moment, answer, and success."""
    guide, notes = sound(env.try_guide(task)), tuple(map(Note, lessons))

    def act(state: object, moment: Moment) -> Answer:
        return env.advise(state, moment, extend(key, len(moment.history)))

    played = turn_by_turn(env, task, guide, act, max_turns, notes)
    return [(turn.moment, turn.answer, turn.step.success) for turn in played]
