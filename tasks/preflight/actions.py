"""Actions of a rehearsal: does the prompt name what changes a state, and does the environment accept its guide?

The expert plays, or given or random actions where there is none. A verb that was not needed is tried in the states on
the way, with one word: where the guide shows it with more, or states cannot be tried twice, that proves nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from math import inf
from time import monotonic
from typing import Any

from coevo.envs.base import Environment, Guide, Step
from coevo.envs.failures import EpisodeFailure, attempted, sound
from coevo.envs.stateful.stateful_environment import StatefulEnvironment
from coevo.envs.verbs import Tried, refused, unnamed, verb_of, verbs_of
from coevo.records.demonstration import Answer, Moment
from coevo.records.draws import Key, extend
from coevo.records.task import Task
from coevo.tasks.play.turns import turn_by_turn
from coevo.tasks.preflight.environment_errors import sampled
from coevo.tasks.preflight.guesses import choices, choose, guesses, takes_one_word

EPISODES = 20
SECONDS = 180.0
"""Seconds after which a stateful simulator, which may be slow, is not tried further."""
TRIES = 2_000
"""Maximum number of actions that try one verb."""
_ENDED = (
    "the rehearsal of {env} ended after {seconds:g} s, in episode {count} of {all}: what it did not try is not known"
)
_LACKING = "the prompt does not name {verb!r}, which changed a state: add it to the guide of {env}"
_LOST = "{env} lost every episode, first {loss}: see `coevo envs check`"
_REFUSED = "no step of {env} accepts {verb!r}, a verb of its guide: correct the guide"
_UNPROVEN = "whether {env} accepts {verb!r} of its guide is not known: `coevo envs check --action` tries a given action"
TURNS = 100
"""Maximum number of turns per episode."""


@dataclass(frozen=True, slots=True)
class Point:
    """A state on the way, with its observation and the guide of its task."""

    state: Any
    observation: str
    guide: Guide


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """Findings of a rehearsal of actions, one line each.

    Attributes:
        problems: verbs that prompts lack, and verbs of the guide that no step accepts; that every episode was lost.
        unproven: verbs of the guide that nothing used and one word cannot try; that time was up.
        outcomes: success and return of each episode, up to the limit of turns.
        actions: actions that the environment understood, each once.
    """

    problems: tuple[str, ...]
    unproven: tuple[str, ...]
    outcomes: tuple[tuple[bool, float], ...] = field(default=(), compare=False)
    actions: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class _Rehearsal:
    """How episodes are played: environment, first prompt of a task, turns, given actions, and the time of the end."""

    env: Environment[Any]
    prompt: Callable[[Task], str] | None
    turns: int
    given: Sequence[str]
    until: float


@dataclass(frozen=True, slots=True)
class _Passed:
    """One episode: its actions, their states, verbs that its prompt lacks, verbs of its guide, and its outcome."""

    tried: list[Tried]
    points: list[Point]
    lacking: set[str]
    verbs: set[str]
    outcome: tuple[bool, float]


def rehearse_actions(
    env: Environment[Any], prompt: Callable[[Task], str] | None, turns: int, draw: Key, given: Sequence[str] = ()
) -> Rehearsed:
    """Play, and compare the actions with prompts and guide; lost episodes are left out.

    Args:
        env: environment to play in.
        prompt: first prompt of a task as text; None for prompts that name no verbs by design.
        turns: maximum number of turns per episode.
        draw: root of the draws.
        given: actions to draw from, instead of the expert's or random ones.
    """
    tasks, passed, losses = sampled(env, EPISODES, draw), list[_Passed](), list[EpisodeFailure]()
    until = monotonic() + (SECONDS if isinstance(env, StatefulEnvironment) else inf)
    rehearsal = _Rehearsal(env, prompt, min(turns, TURNS), given, until)
    for number, task in enumerate(tasks):
        if number and monotonic() > until:
            break
        found = attempted(partial(_play, rehearsal, task, extend(draw, task.id, number)))
        if isinstance(found, EpisodeFailure):
            losses.append(found)
        else:
            passed.append(found)
    problems, unproven = _judged(env, passed, bool(env.has_expert or given), until)
    lost = [_LOST.format(loss=loss, env=env.name) for loss in losses[:1] if not passed]
    count = len(passed) + len(losses)
    late = [_ENDED.format(env=env.name, seconds=SECONDS, count=count, all=EPISODES)] if monotonic() > until else []
    done = tuple(each.outcome for each in passed)
    taken = dict.fromkeys(each.action for one in passed for each in one.tried if each.valid)
    return Rehearsed((*lost, *problems), (*unproven, *late), done, tuple(taken))


def _judged(env: Environment[Any], passed: Sequence[_Passed], knows: bool, until: float) -> tuple[list[str], list[str]]:
    """Problems, and what is not known; ``knows``: whoever played knew how verbs are used."""
    tried = [each for one in passed for each in one.tried]
    points = [each for one in passed for each in one.points]
    verbs = {verb for one in passed for verb in one.verbs}
    lacking = sorted({verb for one in passed for verb in one.lacking})
    used = {verb_of(each.action, verbs) for each in tried} if knows else set[str]()
    accepted = {verb: _accepted(env, points, verb, verb in used, until) for verb in sorted(refused(tried, verbs))}
    return (
        [
            *(_LACKING.format(verb=verb, env=env.name) for verb in lacking),
            *(_REFUSED.format(verb=verb, env=env.name) for verb, known in accepted.items() if known is False),
        ],
        [_UNPROVEN.format(verb=verb, env=env.name) for verb, known in accepted.items() if known is None],
    )


def _play(rehearsal: _Rehearsal, task: Task, draw: Key) -> _Passed:
    """One episode, until its time is up; raises ``EpisodeLostError`` if the environment loses it."""
    env, prompt, until = rehearsal.env, rehearsal.prompt, rehearsal.until
    guide, tried, points = sound(env.try_guide(task)), list[Tried](), list[Point]()
    guess = partial(choices, guide=guide)

    def act(state: Any, moment: Moment) -> Answer | None:
        if points and monotonic() >= until:
            return None
        points.append(Point(state, moment.observation, guide))
        return Answer("", choose(env, state, moment, extend(draw, len(moment.history)), rehearsal.given, guess))

    before: float | None = None
    success, earned = False, 0.0
    for turn in turn_by_turn(env, task, guide, act, rehearsal.turns):
        step, changed = turn.step, _changed(turn.step, turn.moment.observation, before)
        tried.append(Tried(turn.answer.action, step.valid, step.valid and changed))
        before, success, earned = step.progress, step.success, earned + step.reward
    verbs = verbs_of(guide)
    lacking = set[str]() if prompt is None or guide.takes_any_text else unnamed(tried, verbs, prompt(task))
    return _Passed(tried, points, lacking, set(verbs), (success, earned))


def _changed(step: Step[Any], observation: str, before: float | None) -> bool:
    return step.observation != observation or (step.progress or 0.0) != (before or 0.0)


def _provable(env: Environment[Any], points: Sequence[Point], verb: str) -> bool:
    """Report whether one word tries a verb: states can be tried twice, and no guide shows the verb with more."""
    guides = {id(point.guide): point.guide for point in points}.values()
    return env.repeats and all(takes_one_word(verb, guide) for guide in guides)


def _accepted(env: Environment[Any], points: Sequence[Point], verb: str, used: bool, until: float) -> bool | None:
    """Report whether some state accepts an action with this verb; None if that is not known.

    Nothing is tried where it would prove nothing: each try of a stateful simulator opens it anew.
    """
    if not used and not _provable(env, points, verb):
        return None
    if not env.repeats:
        return False
    tries = ((point.state, action) for point in points for action in guesses((verb,), point.observation, point.guide))
    for state, action in islice(tries, TRIES):
        if monotonic() > until:
            return None
        (step,) = env.try_step([state], [action])
        if isinstance(step, Step) and step.valid and verb_of(action, (verb,)) == verb:
            return True
    return False
