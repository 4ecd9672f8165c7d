"""``coevo play``: one episode of an environment, turn by turn."""

import sys
from collections.abc import Callable
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from coevo.configs.load.load import load_env
from coevo.configs.rollout.rollout_config import MAX_TURNS
from coevo.flows.console import output
from coevo.records.demonstration import Answer, Moment
from coevo.utilities.errors import CoevoError, counted

ChooseAction = Callable[[Any, Moment], Answer]
RANDOM_EPISODES = 8
"""Number of demonstrations, of other worlds, whose actions the random agent draws from."""


class PlayableAgent(StrEnum):
    """Agents that can play."""

    EXPERT = "expert"
    RANDOM = "random"
    HUMAN = "human"


def play(
    env: Annotated[str, typer.Argument(help="Name of the environment, or package.module:Class.")],
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]", help="Settings of the environment.")
    ] = None,
    agent: Annotated[
        PlayableAgent,
        typer.Option(help="expert: scripted, without lessons; random: drawn actions; human: those of standard input."),
    ] = PlayableAgent.EXPERT,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the task and of the draws.")] = 0,
    python_path: Annotated[
        list[Path] | None, typer.Option("--python-path", metavar="FOLDER", help="Folder of your own modules.")
    ] = None,
    turns: Annotated[int, typer.Option(min=1, help="Maximum number of turns.")] = MAX_TURNS,
) -> None:
    """Play one training task turn by turn, to its end or for --turns turns.

    Example: coevo play homerules level=2 --agent human --seed 3
    """
    from coevo.envs.base import MissingPartError
    from coevo.envs.registry import make
    from coevo.records.draws import key
    from coevo.tasks.publish.reporter import in_stage

    sys.path.extend(str(folder.absolute()) for folder in python_path or ())
    config = load_env(env, settings or [])
    with in_stage("builds the environment"):
        made = make(config)
    with closing(made) as environment:
        try:
            _episode(environment, agent, key(seed, "play"), turns)
        except MissingPartError as error:
            raise CoevoError(f"--agent {agent}: {error}; or play with --agent random or human") from None


def _episode(environment: Any, agent: PlayableAgent, root: Any, turns: int) -> None:
    from coevo.envs.failures import sound
    from coevo.tasks.play.turns import turn_by_turn

    (task,) = environment.sample(1, root)
    guide = sound(environment.try_guide(task))
    choose = _agent(agent, environment, guide, root)

    def act(state: Any, moment: Moment) -> Answer:
        output.line(f"observe   {moment.observation}")
        answer = choose(state, moment)
        output.line(f"act       {answer.action}" + (f"   ({answer.thought})" if answer.thought else ""))
        return answer

    output.line(f"task      {task.instruction}")
    for turn in turn_by_turn(environment, task, guide, act, turns):
        output.line(f"feedback  {turn.step.feedback}" + ("" if turn.step.valid else "   (not understood)"))
    cut = "" if turn.step.done else ", the limit of --turns"
    played = counted(len(turn.moment.history) + 1, "turn")
    output.line(f"{'solved' if turn.step.success else 'not solved'} in {played}{cut}")


def _agent(agent: PlayableAgent, environment: Any, guide: Any, root: Any) -> ChooseAction:
    from coevo.records.draws import extend

    base = extend(root, agent.value)
    if agent is PlayableAgent.HUMAN:
        return _ask
    if agent is PlayableAgent.EXPERT:
        return lambda state, moment: environment.advise(state, moment, extend(base, len(moment.history)))
    return _random(environment, guide, base)


def _random(environment: Any, guide: Any, base: Any) -> ChooseAction:
    """Draw from the actions of demonstrations; without these, from guesses with the verbs of the guide."""
    from coevo.envs.base import MissingPartError
    from coevo.records.draws import extend, generator
    from coevo.tasks.preflight.guesses import choices

    try:
        shown = sorted({each.answer.action for each in environment.demonstrations(RANDOM_EPISODES, 0, base)})
    except MissingPartError:
        shown = []

    def draw(state: Any, moment: Moment) -> Answer:
        actions = shown or choices(moment.observation, guide)
        return Answer("", actions[generator(extend(base, len(moment.history))).integers(len(actions))])

    return draw


def _ask(state: Any, moment: Moment) -> Answer:
    try:
        return Answer("", input("> ").strip())
    except EOFError:
        raise typer.Abort from None


COMMANDS = (play,)
