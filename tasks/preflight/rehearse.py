"""A rehearsal: two turns of training tasks with a random agent, and the prompts of the run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile, zip_longest
from math import ceil, inf
from statistics import mean
from time import monotonic
from typing import Any

from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment, Guide, MissingPartError
from coevo.envs.failures import EpisodeFailure, attempted, sound
from coevo.envs.stateful.stateful_environment import StatefulEnvironment
from coevo.models.answers.call_tools import schemas_of
from coevo.models.answers.read import check_parser
from coevo.models.answers.thinking import thinking_of
from coevo.models.policy.context import CONTEXT_WORDS, Context
from coevo.models.policy.tokenizers import Guess, tokenizer_of
from coevo.records.demonstration import Moment, Note, PastTurn
from coevo.records.draws import Key, extend, generator, key
from coevo.records.task import Task
from coevo.tasks.preflight.actions import rehearse_actions
from coevo.tasks.preflight.environment_errors import asked, check_batch, guided, sampled
from coevo.tasks.preflight.guesses import guesses

TASKS, TURNS = 8, 2
GLANCE_TIMEOUT_S = 10.0
"""Seconds after which ``glance`` measures no more tasks of panels in a stateful simulator, which may be slow."""
EXPERT_EPISODES = 8
"""Expert episodes of other worlds that provide the random agent's actions."""
FILLING = "note"
"""A lesson so short that ``experience_tokens`` of them fill any budget."""


@dataclass(frozen=True, slots=True)
class RehearsedTurn:
    """One turn of the rehearsal: observation, random action, its result, and the tokens of the prompt."""

    instruction: str
    observation: str
    action: str
    feedback: str
    valid: bool
    tokens: int


@dataclass(frozen=True, slots=True)
class _RehearsedEpisode:
    """An episode.

    Attributes:
        begun: its first moment, or its loss.
        turns: its first turns.
        length: its number of turns.
        truncated: True if the environment's limit ended it.
        cut: True if the run's limit ended it.
    """

    begun: Moment | EpisodeFailure
    turns: list[RehearsedTurn]
    length: int
    truncated: bool
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Result of the rehearsal.

    Attributes:
        turns: turns played, by task.
        tasks: number of training and panel tasks whose prompts were measured.
        shortest: tokens of the shortest prompt.
        longest: tokens of the longest prompt, with a full block of lessons and a full window of turns, whose answers
            are actions alone.
        last: its tokens if it is the last one of an episode of mean length.
        at_most: its tokens if these answers have ``max_new_tokens`` each; a conversation keeps answers whole. At a
            start, ``longest``.
        length: mean turns of an episode of the random agent; at a start, of its first turns.
        cut: share of its episodes that ``rollout.max_turns`` ended; at a start, 0.
        guessed: whether lengths are guesses, since the tokenizer is not on this machine.
        words: size of the policy's vocabulary if it is one of words.
        prompt: first prompt of a training task as text, decoded from its token ids; empty at a start.
        guide: number of its tokens that are the environment's guide.
        thinking: thinking in answers, see ``thinking_of``; ``unknown`` without the tokenizer.
        deviations: differences of a conversation's prompts from what the chat template renders; empty without the
            tokenizer, and for other styles.
        problems: reasons why the policy cannot know or use its actions, one line each.
        unproven: what could not be tried of the environment's guide, one line each.
        outcomes: success and return of episodes of the expert, or of a random agent where there is none.
        action: the action whose answer is the longest: a call of each tool with its required arguments, or what was
            played and understood; empty if nothing was.
        answer: tokens of that answer, without a thought.
    """

    turns: tuple[RehearsedTurn, ...]
    tasks: int
    shortest: int
    longest: int
    last: int
    at_most: int
    length: float
    cut: float
    guessed: bool
    words: int
    prompt: str = ""
    guide: int = 0
    thinking: str = "none"
    deviations: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    outcomes: tuple[tuple[bool, float], ...] = ()
    action: str = ""
    answer: int = 0


def rehearse(config: RunConfig, env: Environment[Any]) -> Rehearsal:
    """Play, and measure the prompts of training tasks and of all evaluated panels."""
    tokenizer, draw = _tokenizer(config, env), key(config.seed, "rehearsal")
    context = Context(config.context, tokenizer)
    check_batch(config, env)
    tasks = sampled(env, TASKS, draw)
    episodes = [_play(env, context, task, extend(draw, task.id), config.rollout.max_turns) for task in tasks]
    found = _measured(config, env, tokenizer, tasks, episodes, inf)
    return _with_actions(found, config, env, context, tokenizer)


def _with_actions(
    found: Rehearsal, config: RunConfig, env: Environment[Any], context: Context, tokenizer: Any
) -> Rehearsal:
    """Add a whole prompt, and what it lacks."""
    draw, limit = key(config.seed, "rehearsal", "actions"), config.rollout.max_turns
    (task,) = sampled(env, 1, draw)
    shown = _first(env, task)
    ids, bare = context.prompt(shown), context.prompt(replace(shown, guide=""))
    text = str(tokenizer.decode(ids))

    def prompt(task: Task) -> str:
        return str(tokenizer.decode(context.prompt(_first(env, task))))

    actions = rehearse_actions(env, None if config.context.style == "words" else prompt, limit, draw)
    calls = [next(guesses((name,), "", Guide(tools=shown.tools))) for name in schemas_of(shown.tools)]
    answers = {action: context.answer_tokens(action, shown) for action in calls or actions.actions}
    longest = max(answers, key=answers.__getitem__, default="")
    return replace(
        found,
        prompt=text,
        guide=len(ids) - len(bare),
        thinking="unknown" if found.guessed else thinking_of(text, str(tokenizer.chat_template)),
        deviations=() if found.guessed else context.deviations(shown.tools),
        problems=actions.problems,
        unproven=actions.unproven,
        outcomes=actions.outcomes,
        action=longest,
        answer=answers.get(longest, 0),
    )


def _first(env: Environment[Any], task: Task) -> Moment:
    """The first moment of a task, without lessons; raises ``CoevoError`` if the environment fails."""
    guide, (_, observation) = guided(env, task), sound(env.try_start([task])[0])
    check_parser(guide.answer)
    return Moment(task.instruction, (), (), observation, guide.text, guide.tools, form=guide.answer)


def glance(config: RunConfig, env: Environment[Any]) -> Rehearsal:
    """Measure the prompts that ``rehearse`` measures, with no more turns than they are made of.

    In a stateful simulator, tasks of panels that are not started within ``GLANCE_TIMEOUT_S`` are left out.
    """
    tokenizer, draw = _tokenizer(config, env), key(config.seed, "rehearsal")
    context, turns = Context(config.context, tokenizer), min(TURNS, config.rollout.max_turns)
    check_batch(config, env)
    tasks = sampled(env, TASKS, draw)
    episodes = [_play(env, context, task, extend(draw, task.id), turns) for task in tasks]
    until = monotonic() + GLANCE_TIMEOUT_S if isinstance(env, StatefulEnvironment) else inf
    found = _measured(config, env, tokenizer, tasks, episodes, until)
    return replace(found, at_most=found.longest, cut=0.0)  # where episodes end is not known


def _tokenizer(config: RunConfig, env: Environment[Any]) -> Any:
    return tokenizer_of(config.policy, (*env.vocabulary, *CONTEXT_WORDS))


def _measured(
    config: RunConfig,
    env: Environment[Any],
    tokenizer: Any,
    tasks: Sequence[Task],
    episodes: Sequence[_RehearsedEpisode],
    until: float,
) -> Rehearsal:
    """Measure the prompts of played training tasks, and of panels until a time of the clock."""
    context, turns = Context(config.context, tokenizer), tuple(turn for each in episodes for turn in each.turns)
    window, lessons = _window(config, turns), _lessons(config, env)
    held_out = (attempted(partial(_first, env, task)) for task in _panels(config, env))
    begun = [*(each.begun for each in episodes), *takewhile(lambda _: monotonic() < until, held_out)]
    bare = [moment for moment in begun if not isinstance(moment, EpisodeFailure)] or [_first(env, tasks[0])]
    full = [replace(moment, lessons=lessons, history=window) for moment in bare]
    widest = max(bare, key=lambda moment: len(moment.guide))
    later = [
        replace(widest, instruction=turn.instruction, lessons=lessons, history=window, observation=turn.observation)
        for turn in turns
    ]
    longest = max((*full, *later), key=lambda moment: len(context.prompt(moment)))
    length = mean(each.length for each in episodes)
    last = replace(longest, history=longest.history[: max(0, ceil(length) - 1)])
    return Rehearsal(
        turns=turns,
        tasks=len(begun),
        shortest=min(len(context.prompt(moment)) for moment in bare),
        longest=len(context.prompt(longest)),
        last=len(context.prompt(last)),
        at_most=_at_most(config, context, longest, _most_turns(config, episodes)),
        length=length,
        cut=mean(each.cut for each in episodes),
        guessed=isinstance(tokenizer, Guess),
        words=0 if isinstance(tokenizer, Guess) else len(tokenizer),
    )


def _at_most(config: RunConfig, context: Context, moment: Moment, turns: int) -> int:
    """Tokens of a moment's prompt in an episode of so many turns, if its answers are as long as they can be."""
    longest = len(context.prompt(moment))
    if config.context.style != "conversation":
        return longest
    silent = tuple(turn._replace(action="") for turn in moment.history[: turns - 1])
    answers = len(silent) * config.rollout.sampling.max_new_tokens
    return max(longest, len(context.prompt(replace(moment, history=silent))) + answers)


def _most_turns(config: RunConfig, episodes: Sequence[_RehearsedEpisode]) -> int:
    """Most turns of an episode: up to the limit of the environment where it was reached, else that of the run."""
    if any(each.truncated for each in episodes):
        return max(each.length for each in episodes)
    return config.rollout.max_turns


def _panels(config: RunConfig, env: Environment[Any]) -> list[Task]:
    """Tasks of all panels, the first of each before the second of any."""
    names = dict.fromkeys((*config.evaluation.panels, *config.evaluation.final_panels))
    size = config.evaluation.tasks
    panels = [asked(env, "panel", partial(env.panel, name, size)).tasks for name in names]
    return [task for each in zip_longest(*panels) for task in each if task is not None]


def _lessons(config: RunConfig, env: Environment[Any]) -> tuple[Note, ...]:
    """More lessons than fit into the prompt; none if the run never shows any."""
    panels = (*config.evaluation.panels, *config.evaluation.final_panels)
    shown = config.bank is not None or any(env.panel_bank(name) for name in panels)
    return (Note(FILLING),) * config.context.experience_tokens if shown else ()


def _window(config: RunConfig, turns: Sequence[RehearsedTurn]) -> tuple[PastTurn, ...]:
    """A full window of turns, each with the longest texts of the rehearsal; empty if every episode was lost."""
    if not turns:
        return ()
    length = config.context.memory_length
    count = min(config.rollout.max_turns, config.rollout.max_turns if length is None else length)
    return (PastTurn(*(max((getattr(turn, name) for turn in turns), key=len) for name in PastTurn._fields)),) * count


def _play(env: Environment[Any], context: Context, task: Task, draw: Key, most: int) -> _RehearsedEpisode:
    """An episode of at most so many turns; up to its loss if the environment fails."""
    (start,), guide = env.try_start([task]), env.try_guide(task)
    if isinstance(start, EpisodeFailure):
        return _RehearsedEpisode(start, [], 0, False)
    if isinstance(guide, EpisodeFailure):
        return _RehearsedEpisode(guide, [], 0, False)
    state, observation = start
    begun = Moment(task.instruction, (), (), observation, guide.text, guide.tools, form=guide.answer)
    choices = _actions(env, observation, extend(draw, "actions"))
    played: list[RehearsedTurn] = []
    history: tuple[PastTurn, ...] = ()
    truncated = done = False
    while len(history) < most:
        action = choices[generator(extend(draw, len(history))).integers(len(choices))]
        (step,) = env.try_step([state], [action])
        if isinstance(step, EpisodeFailure):
            break
        if len(played) < TURNS:
            tokens = len(context.prompt(replace(begun, history=history, observation=observation)))
            played.append(RehearsedTurn(task.instruction, observation, action, step.feedback, step.valid, tokens))
        history = (*history, PastTurn(observation, action, step.feedback))
        state, observation, truncated, done = step.state, step.observation, step.truncated, step.done
        if done:
            break
    return _RehearsedEpisode(begun, played, len(history), truncated, cut=len(history) == most and not done)


def _actions(env: Environment[Any], observation: str, draw: Key) -> list[str]:
    """Actions of experts in other worlds; without experts, the words of the observation."""
    try:
        shown = asked(env, "demonstrations", partial(env.demonstrations, EXPERT_EPISODES, 0, draw))
        return sorted({each.answer.action for each in shown})
    except MissingPartError:
        return sorted({*observation.split(), FILLING})
