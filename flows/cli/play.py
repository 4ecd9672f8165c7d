"""``coevo play``: one episode of an environment, turn by turn."""

from collections.abc import Callable
from contextlib import closing
from enum import StrEnum
from typing import Annotated, Any

import typer

from coevo.configs.base import MAX_TURNS
from coevo.flows.console import output
from coevo.flows.console.options import EnvironmentOptions, JsonOption, with_option_groups
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


@with_option_groups
def play(
    chosen: EnvironmentOptions,
    agent: Annotated[
        PlayableAgent,
        typer.Option(help="expert: scripted, without lessons; random: drawn actions; human: those of standard input."),
    ] = PlayableAgent.EXPERT,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the task and of the draws.")] = 0,
    turns: Annotated[int, typer.Option(min=1, help="Maximum number of turns.")] = MAX_TURNS,
    as_json: JsonOption = False,
) -> None:
    """Play one training task turn by turn, to its end or for --turns turns.

    Example: coevo play homerules level=2 --agent human --seed 3
    """
    from coevo.envs.base import MissingPartError
    from coevo.envs.registry import make
    from coevo.records.draws import key
    from coevo.tasks.publish.reporter import in_stage

    config = chosen.loaded()
    with in_stage("builds the environment"):
        made = make(config)
    with closing(made) as environment:
        try:
            played = _episode(environment, agent, key(seed, "play"), turns, output.line if not as_json else _nothing)
        except MissingPartError as error:
            raise CoevoError(f"--agent {agent}: {error}; or play with --agent random or human") from None
    if as_json:
        output.document(played)


def _nothing(text: str) -> None:
    """Print nothing of a turn: the document has all of them."""


def _episode(
    environment: Any, agent: PlayableAgent, root: Any, turns: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Play an episode, told line by line, and return it as JSON values."""
    from coevo.envs.failures import sound
    from coevo.tasks.play.turns import turn_by_turn

    (task,) = environment.sample(1, root)
    guide = sound(environment.try_guide(task))
    choose = _agent(agent, environment, guide, root)

    def act(state: Any, moment: Moment) -> Answer:
        tell(f"observe   {moment.observation}")
        answer = choose(state, moment)
        tell(f"act       {answer.action}" + (f"   ({answer.thought})" if answer.thought else ""))
        done.append({"observation": moment.observation, "action": answer.action, "thought": answer.thought})
        return answer

    done: list[dict[str, Any]] = []
    tell(f"task      {task.instruction}")
    for turn in turn_by_turn(environment, task, guide, act, turns):
        tell(f"feedback  {turn.step.feedback}" + ("" if turn.step.valid else "   (not understood)"))
        done[-1] |= {"feedback": turn.step.feedback, "valid": turn.step.valid}
    cut = "" if turn.step.done else ", the limit of --turns"
    played = counted(len(turn.moment.history) + 1, "turn")
    tell(f"{'solved' if turn.step.success else 'not solved'} in {played}{cut}")
    return {"task": task.instruction, "success": bool(turn.step.success), "ended": bool(turn.step.done), "turns": done}


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
