"""Episodes of the bot in rooms that are never used for training or evaluation."""

from coevo.configs.env import BabyAIConfig
from coevo.envs.babyai.babyai_contents import GUIDE
from coevo.envs.babyai.babyai_tasks import sample
from coevo.envs.babyai.level_episode import begin
from coevo.envs.babyai.level_plan import plan_of
from coevo.records.demonstration import Demonstration, Moment, PastTurn
from coevo.records.draws import Key
from coevo.records.task import Task


def episodes(config: BabyAIConfig, count: int, draw: Key) -> list[Demonstration]:
    """Turns of ``count`` episodes, one after the other."""
    return [turn for task in sample(config, count, draw, "fresh") for turn in _play(task)]


def _play(task: Task) -> list[Demonstration]:
    state, shown, done = begin(plan_of(task)), list[Demonstration](), False
    observation, history = state.simulator.view(()), tuple[PastTurn, ...]()
    while not done:
        answer = state.simulator.advice(state.actions)
        shown.append(Demonstration(Moment(task.instruction, (), history, observation, GUIDE), answer))
        step = state.simulator.step(state, answer.action)
        history = (*history, PastTurn(observation, answer.action, step.feedback))
        state, observation, done = step.state, step.observation, step.done
    return shown
