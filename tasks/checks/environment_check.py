"""Check of an environment before a run depends on it: ``coevo.check_environment`` and ``coevo envs check``.

It plays a few training tasks twice, with actions that are given; else with the expert's where there is an expert; else
with those of demonstrations, or guesses from guide and observation.
"""

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache, partial
from time import perf_counter

from coevo.envs.base import NO_GUIDE, Environment, Guide, MissingPartError, Step
from coevo.envs.failures import EpisodeFailure, EpisodeLostError, attempted, sound
from coevo.envs.verbs import verbs_of
from coevo.models.answers.forms import format_of
from coevo.models.answers.read import Reader, check_parser
from coevo.models.rewards import unrewarded
from coevo.records.demonstration import Answer, Moment
from coevo.records.draws import Key, extend, key
from coevo.records.task import Task
from coevo.tasks.play.turns import turn_by_turn
from coevo.tasks.preflight.actions import rehearse_actions
from coevo.tasks.preflight.guesses import choices, choose
from coevo.utilities.errors import CoevoError, counted

TURNS = 20
"""Most turns of an episode."""
ROUNDS = 10
"""Most episodes of a task, if they are short and no step of them is valid."""
UNPROVEN = "not known, since no step was valid: give valid actions (--action), or add demonstrations or an expert"
SEEN = tuple(field.name for field in fields(Step) if field.name != "state")
DRAWN = 256
"""Training tasks that are compared with each panel, and most tasks of a panel."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one check.

    Attributes:
        name: promise of the interface.
        passed: True if it holds.
        text: measurement, or what is wrong and what to do about it.
    """

    name: str
    passed: bool
    text: str

    def __str__(self) -> str:
        return f"{'ok  ' if self.passed else 'FAIL'}  {self.name}: {self.text}"


@dataclass(frozen=True, slots=True)
class _Episode:
    """An episode: its actions, the states that they were taken in, and the steps."""

    task: Task
    actions: list[str]
    states: list[object]
    steps: list[Step[object] | EpisodeFailure]

    @property
    def valid(self) -> Iterator[int]:
        """Indices of the steps that the environment understood."""
        return (index for index, step in enumerate(self.steps) if isinstance(step, Step) and step.valid)

    @property
    def seen(self) -> list[object]:
        """Steps without their states."""
        return [
            step if isinstance(step, EpisodeFailure) else [getattr(step, name) for name in SEEN] for step in self.steps
        ]


def check_environment(
    env: Environment[object], tasks: int = 4, actions: Sequence[str] = (), seed: int = 0
) -> list[CheckResult]:
    """Check the promises of an environment's interface; the environment is closed afterwards.

    Args:
        env: environment to check.
        tasks: number of training tasks to play.
        actions: actions to draw from; by default the expert's, or those of demonstrations, or guesses from the guide
            and the observation.
        seed: seed of tasks and actions.

    Returns:
        A result per check; ``str`` of it is one line.
    """
    draw = key(seed, "check")
    try:
        since = perf_counter()
        first = attempted(lambda: _rounds(env, env.sample(tasks, draw), actions, draw))
        if isinstance(first, EpisodeFailure):
            return [CheckResult("no failures", False, str(first))]
        spent, apart = perf_counter() - since, cache(partial(_apart, env, first))
        checks: dict[str, Callable[[], Iterable[CheckResult]]] = {
            "no failures": lambda: [_without_failures(first)],
            "repeats": lambda: _repeating(env, first, apart()),
            "pure": lambda: _pure(env, first, apart),
            "rewards": lambda: [_within_range(env, first)],
            "sample": lambda: [sampling(env, draw)],
            "panels": lambda: panels(env, draw),
            "guide": lambda: [_guide(env, draw, actions)],
            "form": lambda: [_form(env, draw)],
            "answers": lambda: [_readable(env, draw, first, actions)],
            "speed": lambda: [_speed(first, spent)],
        }
        return [result for name, check in checks.items() for result in _guarded(name, check)]
    finally:
        env.close()


def _guarded(name: str, check: Callable[[], Iterable[CheckResult]]) -> list[CheckResult]:
    """Results of a check; it fails if the environment raises an exception in it."""
    found = attempted(lambda: list(check()))
    return [CheckResult(name, False, str(found))] if isinstance(found, EpisodeFailure) else found


def _without_failures(episodes: Sequence[_Episode]) -> CheckResult:
    losses = [
        f"{step} (task {each.task.id})" for each in episodes for step in each.steps if isinstance(step, EpisodeFailure)
    ]
    turns = sum(len(each.steps) for each in episodes)
    text = f"{counted(len(episodes), 'episode')}, {counted(turns, 'step')}"
    return CheckResult("no failures", not losses, losses[0] if losses else text)


def _repeating(
    env: Environment[object], episodes: Sequence[_Episode], apart: Sequence[_Episode]
) -> Iterator[CheckResult]:
    """Check that equal actions give equal steps; ``apart``: episodes that played out differently."""
    name = "repeats"
    remedy = "draw only from the key, or declare repeats = False"
    if apart and env.repeats:
        yield CheckResult(
            name, False, f"task {apart[0].task.id} played out differently with the same actions: {remedy}"
        )
    elif apart:
        yield CheckResult(name, True, "it does not, as it declares: no replay (bank.admission) and no rollout.turns")
    else:
        yield from _proven(name, "equal actions gave equal steps", episodes)


def _apart(env: Environment[object], episodes: Sequence[_Episode]) -> list[_Episode]:
    """Episodes that play out differently when they are played again with the same actions."""
    again = [_played(env, each.task, each.actions, None) for each in episodes]
    # An episode that was lost before an action, by its expert, has one step more than actions.
    return [one for one, other in zip(episodes, again, strict=True) if one.seen[: len(other.seen)] != other.seen]


def _pure(
    env: Environment[object], episodes: Sequence[_Episode], apart: Callable[[], Sequence[_Episode]]
) -> Iterator[CheckResult]:
    """Check that a step leaves the state it starts from as it is; where steps differ by chance, it must be seen."""
    if not env.repeats:
        yield CheckResult("pure", True, "not checked: the environment does not repeat")
        return
    for each in episodes:
        if not each.states:
            continue
        at = next(each.valid, 0)
        before = _image(each.states[at])
        step = env.try_step([each.states[at]], [each.actions[at]])[0]
        if _Episode(each.task, [], [], [step]).seen != each.seen[at : at + 1]:
            if before == _image(each.states[at]) and apart():
                yield CheckResult("pure", True, "not known: steps differ although no state changed, see repeats")
                return
            text = f"task {each.task.id}: a state changed when it was stepped: return a new state, leave the old one"
            yield CheckResult("pure", False, text)
            return
    yield from _proven("pure", "old states stay as they are", episodes)


def _image(state: object) -> bytes | None:
    """A state as bytes; None where it cannot be written so, and a change of it cannot be seen."""
    image = attempted(lambda: pickle.dumps(state))
    return None if isinstance(image, EpisodeFailure) else image


def _proven(name: str, text: str, episodes: Sequence[_Episode]) -> Iterator[CheckResult]:
    """A promise that nothing broke, which only a valid step shows; nothing if every episode was lost at once."""
    if any(True for each in episodes for _ in each.valid):
        yield CheckResult(name, True, text)
    elif any(isinstance(step, Step) for each in episodes for step in each.steps):
        yield CheckResult(name, False, UNPROVEN)


def _within_range(env: Environment[object], episodes: Sequence[_Episode]) -> CheckResult:
    """Check the sum of each episode's rewards."""
    low, high = env.reward_range
    returns = [sum(step.reward for step in each.steps if isinstance(step, Step)) for each in episodes]
    wrong = next((each for each in returns if not low <= each <= high), None)
    solved = [any(isinstance(step, Step) and step.success for step in each.steps) for each in episodes]
    if wrong is None and unrewarded(list(zip(solved, returns, strict=True)), env.reward_range):
        text = f"{counted(sum(solved), 'episode')} succeeded and earned no more than a failure: reward success in step"
        return CheckResult("rewards", False, text)
    if wrong is None:
        least, most = f"{min(returns):g}", f"{max(returns):g}"
        sums = f"all sums of an episode are {least}" if least == most else f"sums of an episode are {least} to {most}"
        unseen = "" if any(solved) else "; no episode succeeded, so the reward of success is not checked"
        return CheckResult("rewards", True, f"{sums}{unseen}")
    remedy = "scale the rewards, or set reward_range (env.reward_range, or an attribute of the class)"
    text = f"the sum of an episode is {wrong:g}, which is not between {low:g} and {high:g}: {remedy}"
    return CheckResult("rewards", False, text)


def _guide(env: Environment[object], draw: Key, actions: Sequence[str]) -> CheckResult:
    """Check that the guide names what changes a state, and that the environment accepts its verbs."""
    guide = env.try_guide(env.sample(1, draw)[0])
    if isinstance(guide, EpisodeFailure):
        return CheckResult("guide", False, str(guide))
    if not (guide.text or guide.verbs or guide.tools):
        return CheckResult("guide", True, "none; prompts of pretrained policies need Environment.guide")
    prompt, root = (lambda task: _words(env.guide(task))), extend(draw, "guide")
    found = attempted(lambda: rehearse_actions(env, prompt, TURNS, root, actions))
    if isinstance(found, EpisodeFailure):
        return CheckResult("guide", False, str(found))
    said = [*found.problems, *found.unproven]
    text = "any text is an action" if guide.takes_any_text else f"{counted(len(verbs_of(guide)), 'verb')}, all accepted"
    return CheckResult("guide", not found.problems, said[0] if said else text)


def _words(guide: Guide) -> str:
    """A guide as a prompt shows it: the form that it asks for, its text, and its tools as JSON."""
    asked = "" if guide.answer is None else format_of("auto", guide.answer, bool(guide.tools)).request
    return f"{asked}\n{guide.text}\n{json.dumps([dict(tool) for tool in guide.tools])}"


def _form(env: Environment[object], draw: Key) -> CheckResult:
    """Show the form of answers, and check that its examples are read as they are written."""
    guide = sound(env.try_guide(env.sample(1, draw)[0]))
    form, examples = guide.answer, guide.answer.examples if guide.answer else ()
    if form is None:
        text = "a tool call" if guide.tools else "not named: a line 'Action: ...' is asked for, and any form is read"
        return CheckResult("form", True, text)
    check_parser(form)
    misread = _misread(guide, examples)
    if misread:
        text = f"the example {misread[0]!r:.80} is not read as it is written ({form}): correct it, or the form"
        return CheckResult("form", False, text)
    shown = f"; {counted(len(examples), 'example')} read" if examples else ""
    return CheckResult("form", True, f"{form}{shown}")


def _readable(env: Environment[object], draw: Key, episodes: Sequence[_Episode], actions: Sequence[str]) -> CheckResult:
    """Check that answers are read back as the actions that they were written with: valid ones and given ones."""
    guide = sound(env.try_guide(env.sample(1, draw)[0]))
    written = {*actions, *(each.actions[index] for each in episodes for index in each.valid)}
    misread = _misread(guide, sorted(written))
    if misread:
        remedy = "name another form (Guide.answer), or change the grammar of actions"
        return CheckResult("answers", False, f"the action {misread[0]!r:.80} is not read as it is written: {remedy}")
    return CheckResult("answers", True, counted(len(written), "action"))


def _misread(guide: Guide, actions: Sequence[str]) -> list[str]:
    """Actions that are not read as they are written in the form of an environment."""
    asked = format_of("auto", guide.answer, False)
    reader = Reader("auto" if guide.answer is None else guide.answer, guide.tools if guide.answer else ())
    return [action for action in actions if reader.read(asked.write(Answer("so", action))).action != action]


def _speed(episodes: Sequence[_Episode], spent: float) -> CheckResult:
    turns = sum(len(each.steps) for each in episodes)
    return CheckResult(
        "speed", turns > 0, f"{turns / max(spent, 1e-9):.0f} steps/s, one episode at a time, starts included"
    )


def _rounds(env: Environment[object], tasks: Sequence[Task], actions: Sequence[str], draw: Key) -> list[_Episode]:
    """An episode of each task, and more of them if they are short, none is lost, and no step is valid."""
    episodes, steps = list[_Episode](), list[Step[object] | EpisodeFailure]()
    for number in range(ROUNDS):
        episodes += [_played(env, task, actions, extend(draw, task.id, number)) for task in tasks]
        steps = [step for each in episodes for step in each.steps]
        if len(steps) >= TURNS * len(tasks) or any(isinstance(step, EpisodeFailure) or step.valid for step in steps):
            break
    return episodes


def _played(env: Environment[object], task: Task, actions: Sequence[str], draw: Key | None) -> _Episode:
    """An episode with drawn actions; with exactly these if ``draw`` is None."""
    episode, guide, guess = _Episode(task, [], [], []), env.try_guide(task), partial(_choices, env, task)

    def act(state: object, moment: Moment) -> Answer:
        turn = len(episode.actions)
        if draw is None:
            action = actions[turn]
        else:
            action = sound(attempted(partial(choose, env, state, moment, extend(draw, turn), actions, guess)))
        episode.actions.append(action)
        episode.states.append(state)
        return Answer("", action)

    try:
        # The check of the guide reports one that is lost.
        known = NO_GUIDE if isinstance(guide, EpisodeFailure) else guide
        for turn in turn_by_turn(env, task, known, act, len(actions) if draw is None else TURNS):
            episode.steps.append(turn.step)
    except EpisodeLostError as error:
        episode.steps.append(error.loss)
    return episode


def _choices(env: Environment[object], task: Task, observation: str) -> list[str]:
    """Actions of demonstrations; without these, guesses from the guide and the observation."""
    try:
        return sorted({each.answer.action for each in env.demonstrations(8, 0, key("check"))})
    except MissingPartError:
        return choices(observation, sound(env.try_guide(task)))


def sampling(env: Environment[object], draw: Key) -> CheckResult:
    """Check that training tasks differ and are of the training split."""
    tasks = _trained(env, draw)
    different, splits = len({task.id for task in tasks}), {task.split for task in tasks}
    problems = {
        f"of {len(tasks)} tasks {len(tasks) - different} are returned again: return different ones": (
            different < len(tasks)
        ),
        f"its tasks have split {', '.join(sorted(splits))}: set split to train": splits != {"train"},
    }
    wrong = [text for text, holds in problems.items() if holds]
    return CheckResult("sample", not wrong, wrong[0] if wrong else counted(len(tasks), "different task"))


def _trained(env: Environment[object], draw: Key) -> list[Task]:
    """Training tasks, fewer than ``DRAWN`` where the environment does not have so many."""
    count, root = DRAWN, extend(draw, "panels")
    while count > 1:
        tasks = attempted(partial(env.sample, count, root))
        if not isinstance(tasks, EpisodeFailure):
            return tasks
        count //= 2
    return env.sample(1, root)


def panels(env: Environment[object], draw: Key) -> Iterator[CheckResult]:
    """Check that tasks of a panel stay the same, are of its split, and are none of training."""
    trained = {task.id for task in _trained(env, draw)}
    for name in env.panels:
        size = next(size for size in range(DRAWN, 0, -1) if size == 1 or _has(env, name, size))
        panel = env.panel(name, size)
        shared, splits = trained & {task.id for task in panel.tasks}, {task.split for task in panel.tasks}
        problems = {
            f"{len(shared)} of its tasks are training tasks: sample must leave them out": bool(shared),
            "it differs from call to call: derive it from its name": panel != env.panel(name, size),
            f"its tasks have split {', '.join(sorted(splits))}: set split to the panel's name": splits != {name},
        }
        wrong = [text for text, holds in problems.items() if holds]
        text = f"{counted(size, 'task')}, none of them for training"
        yield CheckResult(f"panel {name}", not wrong, wrong[0] if wrong else text)


def _has(env: Environment[object], panel: str, size: int) -> bool:
    """Report whether a panel has so many tasks."""
    try:
        return len(env.panel(panel, size).tasks) == size
    except CoevoError:
        return False
