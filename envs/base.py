"""The interface of an environment: behaviour only, all data is in tasks and states.

A new environment subclasses ``Environment``, implements its abstract methods and registers under the entry-point
group ``coevo.envs`` (or is named ``package.module:Class`` in the configuration).
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any, ClassVar, Generic, Self, TypeVar

from coevo.configs.base import is_name
from coevo.envs.failures import EpisodeFailure, attempted, invalid
from coevo.records.answer_form import AnswerForm, CallForm, OwnForm
from coevo.records.demonstration import Answer, Demonstration, Moment
from coevo.records.draws import Key
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.task import Panel, Task
from coevo.utilities.errors import CoevoError

StateT = TypeVar("StateT")
UNTAUGHT = (
    "write `{}` (docs/add-an-environment.md), or take a policy that can read (policy.type=pretrained, warmstart=null)"
)
"""Remedy where an environment lacks what teaches a policy from scratch, which knows no words."""
_PARAMETERS = ("parameters", "inputSchema", "input_schema")
"""Names of the schema of a tool's arguments."""


class MissingPartError(CoevoError):
    """An optional part that this environment lacks."""


@dataclass(frozen=True, slots=True)
class Step(Generic[StateT]):
    """Result of one action.

    Attributes:
        state: the new state; the previous one stays unchanged.
        observation: the agent's next observation.
        feedback: the environment's answer to the action.
        reward: extrinsic reward of the action.
        done: True if the episode is over.
        success: True if the task is solved; only with ``done``.
        valid: True if the action was understood.
        truncated: True if a limit, not the task, ended the episode.
        progress: ground-truth fraction of the task completed, None if unknown.
        scores: values that the reward is made of, by name; their means are metrics of their own.
    """

    state: StateT
    observation: str
    feedback: str
    reward: float
    done: bool
    success: bool
    valid: bool = True
    truncated: bool = False
    progress: float | None = None
    scores: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Guide:
    """How to act in an environment, for policies that do not know it.

    Attributes:
        text: grammar of the actions, and what is admissible in this task as far as the environment knows it; it names
            every verb. It stands in every prompt of the ``chat`` style.
        verbs: first words of all actions, or whole actions where these have no arguments.
        tools: tools that the environment offers as JSON schemas of functions (``name``, ``description``,
            ``parameters``), bare or as OpenAI's interface wraps them; empty if actions are plain text.
        answer: form of an answer, such as ``coevo.LineForm``: the prompt asks for it, and answers are read in it. If
            None, prompts ask for a line ``Action: ...``, or for a call where there are tools, and answers are read in
            whichever form they have.
    """

    text: str = ""
    verbs: tuple[str, ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    answer: AnswerForm | None = None

    @property
    def takes_any_text(self) -> bool:
        """True if any text is an action: a prompt then need not name its first word."""
        return self.answer is not None and self.answer.takes_any_text and not self.verbs


NO_GUIDE = Guide()
"""Guide of an environment that does not describe its actions."""


@dataclass(frozen=True, slots=True)
class Revealed:
    """Something that a step of an episode reveals, in the words of a true note.

    Attributes:
        note: the note.
        when: situation in which it applies.
        step: index of the step.
    """

    note: str
    when: str
    step: int


class Environment(ABC, Generic[StateT]):
    """A family of text tasks. Instances are immutable and may be shared."""

    name: ClassVar[str]
    """Registered name."""
    version: str
    """Version, which changes whenever the same task would play differently."""
    panels: Mapping[str, str]
    """Held-out panels by name, each with a short description."""
    has_expert: bool = False
    """True if ``advise`` answers."""
    expert_guesses: ClassVar[bool] = True
    """True if its answers are partly guesses, so that its episodes of one task differ."""
    reward_range: tuple[float, float] = (0.0, 1.0)
    """Bounds of an episode's extrinsic return."""
    repeats: bool = True
    """True if the same task and actions always give the same steps; paired replay and unfinished episodes need it."""
    concurrent: ClassVar[bool] = False
    """True if several threads may start and advance episodes at once (``rollout.pace=episode``)."""

    @abstractmethod
    def sample(self, count: int, key: Key) -> list[Task]:
        """Draw ``count`` training tasks, a function of ``key`` alone; none of them is in a panel."""

    @abstractmethod
    def panel(self, name: str, size: int) -> Panel:
        """Held-out panel, equal at every call. Raises ``CoevoError`` for an unknown name."""

    def at(self, iteration: int) -> Self:
        """The environment in an iteration of a run, for its tasks and panels; itself unless its world drifts.

        A task holds all that ``start`` needs: both play the tasks of either. Only the first is closed.

        Args:
            iteration: number of the iteration, from 1; 0 before the first.
        """
        return self

    def renewed(self, task: Task) -> Task:
        """A training task of any iteration with the facts in force here; itself unless its world drifts.

        It stays a training task: no panel holds it.
        """
        return task

    @abstractmethod
    def start(self, task: Task) -> tuple[StateT, str]:
        """First state and observation of a task."""

    @abstractmethod
    def step(self, states: Sequence[StateT], actions: Sequence[str]) -> list[Step[StateT]]:
        """Advance a batch of episodes by one action each; an unreadable action is a step with ``valid=False``."""

    def guide(self, task: Task) -> Guide:
        """Actions of the environment, as a policy reads them in the prompts of a task; empty if it does not say."""
        return NO_GUIDE

    def try_start(self, tasks: Sequence[Task]) -> list[tuple[StateT, str] | EpisodeFailure]:
        """First state and observation of each task; a failure costs only its own episode."""
        return [_checked_start(attempted(partial(self.start, task))) for task in tasks]

    def try_guide(self, task: Task) -> Guide | EpisodeFailure:
        """``guide`` of a task; a failure costs only the task's episodes."""
        guide = attempted(partial(self.guide, task))
        if isinstance(guide, EpisodeFailure):
            return guide
        if not isinstance(guide, Guide):
            return invalid("guide", guide)
        return _unreadable(guide.text) or flawed(guide.tools) or _unasked(guide) or guide

    def try_step(self, states: Sequence[StateT], actions: Sequence[str]) -> list[Step[StateT] | EpisodeFailure]:
        """Advance a batch as ``step`` does; a failure costs only its own episode.

        If the batch fails, its episodes are advanced one by one, which ``step`` allows since it changes no state. Code
        in this process cannot be interrupted: only a ``StatefulEnvironment`` has a time limit.
        """
        together = attempted(lambda: list(self.step(states, actions)))
        if isinstance(together, EpisodeFailure) or len(together) != len(states):
            alone = zip(states, actions, strict=True)
            return [_checked_step(attempted(partial(self._alone, state, action))) for state, action in alone]
        return list(map(_checked_step, together))

    def _alone(self, state: StateT, action: str) -> Step[StateT]:
        (step,) = self.step([state], [action])
        return step

    def release(self, states: Sequence[StateT]) -> None:
        """Free what belongs to states of episodes that are over; called once an episode ends for any reason."""

    def close(self) -> None:
        """End everything that the environment has started; it starts again when it is used again."""

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Every word that a prompt or answer can contain, for word-level policies; empty if the list is unknown."""
        return ()

    def expert(self, moment: Moment, key: Key) -> Answer:
        """Answer of an expert that knows only ``moment``; ``key`` decides its guesses."""
        raise MissingPartError(f"{self.name} has no expert")

    def advise(self, state: StateT, moment: Moment, key: Key) -> Answer:
        """Answer of the expert in a state, shown as ``moment``; one that has watched the episode may know more."""
        return self.expert(moment, key)

    def demonstrations(self, episodes: int, drills: int, key: Key) -> list[Demonstration]:
        """Expert material for warm starts, from worlds that are never used for training or evaluation."""
        raise self.untaught("demonstrations")

    def probe(self, size: int, key: Key) -> "Probe":
        """Reading probe: tasks of a fresh world with right and wrong lessons, to test if a policy reads its prompt."""
        raise self.untaught("probe")

    def untaught(self, part: str) -> MissingPartError:
        """Error for a part that teaches a policy and that the environment lacks: ``demonstrations`` or ``probe``."""
        name = {"probe": "reading probe"}.get(part, part)
        return MissingPartError(f"{self.name} has no {name}: {UNTAUGHT.format(part)}")

    def revealed(self, episode: Episode) -> list[Revealed]:
        """True notes that an episode reveals, as a perfect writer would draw them: material to train a writer on."""
        raise MissingPartError(f"{self.name} does not say what its episodes reveal")

    def needed(self, task: Task) -> tuple[str, ...] | None:
        """Notes that are enough to solve a task, in the words of ``revealed``; None if the environment cannot tell.

        They tell why an episode failed: without a lesson, or with the right ones in its prompts. No policy sees them.
        """
        return None

    def panel_bank(self, panel: str) -> list[Entry] | None:
        """Bank that a panel is played with: None for the run's own, an empty list for no bank."""
        return None


@dataclass(frozen=True, slots=True)
class Probe:
    """A reading probe: the same tasks twice, with true lessons and with false lessons.

    Attributes:
        tasks: tasks to play.
        right: lessons for each task that are true in its world.
        wrong: lessons of the same form for each task that are false there; empty if lessons do not exist.
    """

    tasks: tuple[Task, ...]
    right: tuple[tuple[str, ...], ...]
    wrong: tuple[tuple[str, ...], ...]


def _checked_start(start: Any) -> tuple[Any, str] | EpisodeFailure:
    """State and first observation, or why they are none."""
    if isinstance(start, EpisodeFailure):
        return start
    if not isinstance(start, tuple | list) or len(start) != 2:
        return invalid("pair of state and observation", start)
    return _unreadable(start[1]) or (start[0], start[1])


def _checked_step(step: Any) -> Step[Any] | EpisodeFailure:
    """A step that can be recorded, or why it cannot."""
    if isinstance(step, EpisodeFailure):
        return step
    if not isinstance(step, Step):
        return invalid("step", step)
    numbers = (step.reward, 0.0 if step.progress is None else step.progress)
    wrong = [invalid("finite number", number) for number in numbers if attempted(partial(isfinite, number)) is not True]
    flags = (step.done, step.success, step.valid, step.truncated)
    wrong += [invalid("truth value", flag) for flag in flags if not _is_flag(flag)]
    wrong += [invalid("list of names and finite numbers", step.scores)] if not _are_scores(step.scores) else []
    return _unreadable(step.observation, step.feedback) or (wrong[0] if wrong else _plain(step))


def _are_scores(scores: Any) -> bool:
    """True for names of metrics with finite numbers."""
    return attempted(lambda: all(is_name(name) and isfinite(value) for name, value in scores)) is True


def _is_flag(value: Any) -> bool:
    """True for a truth value, of whichever library."""
    return isinstance(value, bool) or attempted(lambda: value in (True, False)) is True


def _plain(step: Step[StateT]) -> Step[StateT]:
    """A step whose numbers and truth values are Python's own: manifests and tables know no others."""
    flags, numbers = (step.done, step.success, step.valid, step.truncated), (step.reward, step.progress)
    if all(isinstance(flag, bool) for flag in flags) and all(isinstance(each, float | int | None) for each in numbers):
        return step
    done, success, valid, truncated = map(bool, flags)
    reward, progress = (None if number is None else float(number) for number in numbers)
    assert reward is not None
    scores = tuple((name, float(value)) for name, value in step.scores)
    return Step(step.state, step.observation, step.feedback, reward, done, success, valid, truncated, progress, scores)


def _unreadable(*texts: Any) -> EpisodeFailure | None:
    """Loss for the first value that is no text, or that UTF-8 cannot encode."""
    for text in texts:
        if not isinstance(text, str):
            return invalid("text", text)
        try:
            text.encode()
        except UnicodeEncodeError:
            return invalid("text that UTF-8 can encode", text)
    return None


def _unasked(guide: Guide) -> EpisodeFailure | None:
    """Loss for a form that is none, or that does not fit the tools."""
    form = guide.answer
    if form is not None and not isinstance(form, AnswerForm):
        return invalid("form of an answer", form)
    fits = form is None or isinstance(form, OwnForm) or isinstance(form, CallForm) == bool(guide.tools)
    return None if fits else invalid("form of calls of tools" if guide.tools else "form without tools", form)


def flawed(tools: Any) -> EpisodeFailure | None:
    """Loss for the first tool that is no JSON schema of a function, or None."""
    if not isinstance(tools, tuple | list):
        return invalid("list of tools", tools)
    return next((loss for tool in tools if (loss := _flaw(tool)) is not None), None)


def _flaw(tool: Any) -> EpisodeFailure | None:
    if not isinstance(attempted(partial(json.dumps, tool)), str):
        return invalid("JSON, as a tool has to be", tool)
    function = tool.get("function", tool) if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        return invalid("tool with a name", tool)
    schema: Any = next((function[name] for name in _PARAMETERS if name in function), {})
    required = schema.get("required", []) if isinstance(schema, Mapping) else None
    if not isinstance(required, tuple | list) or not all(isinstance(name, str) for name in required):
        return invalid("schema with an object's parameters and the names of those required", schema)
    return None
