"""Episodes of the bot in rooms that are never trained or evaluated in."""

from configs.env import BabyAIConfig
from envs.babyai.episode import begin
from envs.babyai.plan import plan_of
from envs.babyai.tasks import sample
from records.demonstration import Demonstration, Moment, PastTurn
from records.draws import Key
from records.task import Task


def episodes(config: BabyAIConfig, count: int, draw: Key) -> list[Demonstration]:
    """The turns of ``count`` episodes, one after the other."""
    return [turn for task in sample(config, count, draw, "fresh") for turn in _play(task)]


def _play(task: Task) -> list[Demonstration]:
    state, shown, done = begin(plan_of(task)), list[Demonstration](), False
    observation, history = state.simulator.view(()), tuple[PastTurn, ...]()
    while not done:
        answer = state.simulator.advice(state.actions)
        shown.append(Demonstration(Moment(task.instruction, (), history, observation), answer))
        step = state.simulator.step(state, answer.action)
        history = (*history, PastTurn(observation, answer.action, step.feedback))
        state, observation, done = step.state, step.observation, step.done
    return shown
