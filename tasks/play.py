"""Playing episodes: a batch of attempts, turn by turn, each leaving the batch when it is over."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from envs.base import Environment, Step
from models.context import Context
from models.engines.base import Engine, Request
from records.demonstration import Answer, Moment, PastTurn
from records.draws import Key, extend
from records.entry import Entry
from records.episode import UNSTAMPED, Completion, Episode, Turn
from records.task import Task

Recall = Callable[[str], tuple[Entry, ...]]
"""The experience that an observation brings into the prompt of its turn, best first."""


def nothing(observation: str) -> tuple[Entry, ...]:
    """No experience for single turns."""
    return ()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One episode to be played.

    Attributes:
        task: what to attempt.
        replica: index within the task's group.
        entries: the experience in all its prompts, best first.
        stage: why it is played; part of the episode's id.
        revision: revision of the policy that plays.
        key: root of its draws.
        recall: the experience that one turn's prompt has besides.
        version: of the policy that plays, for its turns to bear.
    """

    task: Task
    replica: int
    entries: tuple[Entry, ...]
    stage: str
    revision: int
    key: Key
    recall: Recall = nothing
    version: int = UNSTAMPED

    @property
    def id(self) -> str:
        """Identity of the episode."""
        return Episode.name(self.revision, self.stage, self.task, self.replica)

    @property
    def group(self) -> str:
        """Attempts of one group share task and lasting experience, hence the head of their prompts."""
        return group_of(self.task, self.entries)


def group_of(task: Task, entries: Sequence[Entry]) -> str:
    """Name of the group of prompts that have a task and these entries in common."""
    return f"{task.id}/{','.join(entry.id for entry in entries)}"


@dataclass
class Running:
    """An attempt in progress.

    Attributes:
        attempt: what is attempted.
        state: the environment's.
        observation: what the agent sees.
        turns: those played.
        last: what the last action led to.
        shown: the experience in the present prompt.
        told: turns that parts of it have been made of.
    """

    attempt: Attempt
    state: object
    observation: str
    turns: list[Turn] = field(default_factory=list)
    last: Step[object] | None = None
    shown: tuple[Entry, ...] = ()
    told: int = 0

    def moment(self, context: Context) -> Moment:
        """What the next prompt says; lasting experience comes first, so that it stays in the shared head."""
        task, lasting = self.attempt.task, self.attempt.entries
        self.shown = context.shown(tuple(dict.fromkeys((*lasting, *self.attempt.recall(self.observation)))))
        lessons = tuple(entry.strategy for entry in self.shown)
        history = tuple(PastTurn(turn.observation, turn.action, turn.feedback) for turn in self.turns)
        return Moment(task.instruction, lessons, history, self.observation)

    def advance(self, prompt: tuple[int, ...], completion: Completion, answer: Answer, step: Step[object]) -> None:
        """Go on by a turn: its prompt, what the policy answered, and what the environment did."""
        turn = Turn(
            observation=self.observation,
            prompt_ids=prompt,
            completion=completion,
            action=answer.action,
            feedback=step.feedback,
            reward=step.reward,
            valid=step.valid,
            retrieved=tuple(entry.id for entry in self.shown),
            version=self.attempt.version,
        )
        self.turns.append(turn)
        self.state, self.observation, self.last = step.state, step.observation, step

    def part(self, following: tuple[int, ...] = ()) -> Episode:
        """The turns since the last part; ``following`` is the prompt of the next one, where it goes on."""
        attempt, last, start = self.attempt, self.last, self.told
        assert last is not None
        self.told = len(self.turns)
        return Episode(
            id=attempt.id,
            task=attempt.task,
            revision=attempt.revision,
            replica=attempt.replica,
            turns=tuple(self.turns[start:]),
            success=last.success,
            truncated=not following and (last.truncated or not last.done),
            progress=last.progress,
            start=start,
            following=following,
        )


class Playing(ABC):
    """Plays attempts in one environment; who answers is left to others."""

    def __init__(self, env: Environment[object], max_turns: int) -> None:
        self.env = env
        self.max_turns = max_turns

    def play(self, attempts: Sequence[Attempt]) -> list[Episode]:
        """Play every attempt to its end, or to ``max_turns``; episodes come back in the order of the attempts."""
        everyone = [self.begin(attempt) for attempt in attempts]
        running = everyone
        while running:
            self.play_turn(running)
            running = [live for live in running if not self.is_over(live)]
        return [live.part() for live in everyone]

    def begin(self, attempt: Attempt) -> Running:
        """An attempt before its first turn."""
        return Running(attempt, *self.env.start(attempt.task))

    def is_over(self, live: Running) -> bool:
        """Whether the environment or the turn limit has ended it."""
        return len(live.turns) >= self.max_turns or (live.last is not None and live.last.done)

    @abstractmethod
    def play_turn(self, running: Sequence[Running]) -> None:
        """Play one turn of each."""


class Player(Playing):
    """Plays attempts with one policy in one environment."""

    def __init__(self, env: Environment[object], context: Context, engine: Engine, max_turns: int) -> None:
        super().__init__(env, max_turns)
        self.context = context
        self.engine = engine

    def cut(self, live: Running) -> Episode:
        """The part of an attempt that goes on, from its last cut to here."""
        return live.part(self.context.prompt(live.moment(self.context)))

    def play_turn(self, running: Sequence[Running]) -> None:
        """Play one turn of each, all in one batch."""
        prompts = [self.context.prompt(live.moment(self.context)) for live in running]
        completions = self.engine.generate(
            [
                Request(prompt, extend(live.attempt.key, len(live.turns)), self._group(live))
                for live, prompt in zip(running, prompts, strict=True)
            ]
        )
        answers = [self.context.read(completion.text) for completion in completions]
        steps = self.env.step([live.state for live in running], [answer.action for answer in answers])
        for live, prompt, completion, answer, step in zip(running, prompts, completions, answers, steps, strict=True):
            live.advance(prompt, completion, answer, step)

    def _group(self, live: Running) -> str:
        """Where lessons lead the prompt, a turn's own ones belong to the head that is shared."""
        return group_of(live.attempt.task, live.shown) if self.context.leads else live.attempt.group
