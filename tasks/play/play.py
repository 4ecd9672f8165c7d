"""Playing episodes: attempts at tasks, a batch of them turn by turn; an attempt leaves the batch when it is over."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from threading import Event, Lock
from time import perf_counter
from typing import TypeVar

from coevo.envs.base import NO_GUIDE, Environment, Guide, Step
from coevo.envs.failures import EpisodeFailure, one_line
from coevo.models.engines.requests import Engine, Request
from coevo.models.policy.context import Context
from coevo.records.demonstration import Answer, Moment, Note, PastTurn
from coevo.records.draws import Key, extend
from coevo.records.entry import Entry
from coevo.records.episode import UNSTAMPED, Completion, Episode, Turn
from coevo.records.task import Task
from coevo.tasks.publish.reporter import counting

Recall = Callable[[str], tuple[Entry, ...]]
"""Function from an observation to the experience for the prompt of its turn, best first."""


def nothing(observation: str) -> tuple[Entry, ...]:
    """No experience for single turns."""
    return ()


PROGRESS = "{turns} turns played, slowest {slowest:.1f} s"
"""Report on the turns of a batch; the slowest one is that of the slowest rollout worker so far."""
OVERLONG = "overlong"
"""Kind of the reason that ends an episode whose next prompt is too long."""


def overlong(prompt: Sequence[int], most: int) -> str:
    """Reason why a prompt leaves no room for an answer; empty if it has at most ``most`` tokens."""
    if len(prompt) <= most:
        return ""
    return f"{OVERLONG}: a prompt of {len(prompt)} tokens, and the policy attends to {most} before its answer"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One episode to play.

    Attributes:
        task: task to attempt.
        replica: index within the task's group.
        entries: experience in all its prompts, best first.
        stage: purpose of the episode; part of its id.
        revision: revision of the policy.
        key: root of its draws.
        recall: additional experience for the prompt of a single turn.
        version: version of the policy, recorded in its turns.
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
        """Name of the attempt's group, which shares task and lasting experience, hence the start of its prompts."""
        return group_of(self.task, self.entries)


def group_of(task: Task, entries: Sequence[Entry]) -> str:
    """Name of the group of prompts with this task and these entries."""
    return f"{task.id}/{','.join(entry.id for entry in entries)}"


@dataclass
class Running:
    """An attempt in progress.

    Attributes:
        attempt: the attempt.
        state: state of the environment.
        observation: current observation.
        turns: turns played.
        last: result of the last action.
        shown: experience in the current prompt.
        returned: number of turns in the parts returned so far.
        guide: how to act in the environment.
        cut: reason if the policy cannot continue; empty otherwise.
        lost: reason if the environment has failed; empty otherwise.
        over: True if an agent that is served reports that its unusable answers have ended the episode.
    """

    attempt: Attempt
    state: object
    observation: str
    turns: list[Turn] = field(default_factory=list)
    last: Step[object] | None = None
    shown: tuple[Entry, ...] = ()
    returned: int = 0
    guide: Guide = NO_GUIDE
    cut: str = ""
    lost: str = ""
    over: bool = False

    @classmethod
    def begun(
        cls, attempt: Attempt, start: tuple[object, str] | EpisodeFailure, guide: Guide | EpisodeFailure
    ) -> "Running":
        """The attempt after the environment's start and guide, which may have failed."""
        failed = next((str(each) for each in (start, guide) if isinstance(each, EpisodeFailure)), "")
        state, observation = (None, "") if isinstance(start, EpisodeFailure) else start
        return cls(
            attempt, state, observation, guide=NO_GUIDE if isinstance(guide, EpisodeFailure) else guide, lost=failed
        )

    @property
    def stopped(self) -> bool:
        """True if the attempt cannot be continued, or the environment has ended it."""
        return bool(self.cut or self.lost or self.over) or (self.last is not None and self.last.done)

    def moment(self, context: Context) -> Moment:
        """The next prompt's content; lasting experience comes first, so that it stays in the shared start."""
        task, lasting = self.attempt.task, self.attempt.entries
        self.shown = context.shown(
            tuple(dict.fromkeys((*lasting, *self.attempt.recall(self.observation)))), task.instruction
        )
        lessons = tuple(map(Note.of, context.unread(self.shown, self.turns)))
        history = tuple(PastTurn(turn.observation, turn.action, turn.feedback) for turn in self.turns)
        guide, played, seen = self.guide, tuple(self.turns), self.observation
        return Moment(task.instruction, lessons, history, seen, guide.text, guide.tools, played, guide.answer)

    def advance(
        self,
        prompt: tuple[int, ...],
        completion: Completion,
        answer: Answer,
        step: Step[object] | EpisodeFailure,
        seconds: tuple[float | None, float | None] = (None, None),
    ) -> None:
        """Append a turn: its prompt, the policy's answer, and the environment's step; a failed step adds no turn.

        ``seconds`` are those of the policy's answer, and of the whole turn.
        """
        if isinstance(step, EpisodeFailure):
            self.lost = f"{step} (turn {len(self.turns)}, action {one_line(answer.action)!r:.80})"
            return
        turn = Turn(
            observation=self.observation,
            prompt_ids=prompt,
            completion=completion,
            action=answer.action,
            feedback=step.feedback,
            reward=step.reward,
            valid=step.valid and not answer.fault,
            retrieved=tuple(entry.id for entry in self.shown),
            version=self.attempt.version,
            fault=answer.fault,
            scores=step.scores,
            drawing=seconds[0],
            seconds=seconds[1],
        )
        self.turns.append(turn)
        self.state, self.observation, self.last = step.state, step.observation, step

    def part(self, following: tuple[int, ...] = ()) -> Episode:
        """The turns since the last part; ``following`` is the prompt of the next part if the episode continues."""
        attempt, last, start = self.attempt, self.last, self.returned
        ended = last is not None and last.done
        self.returned = len(self.turns)
        return Episode(
            id=attempt.id,
            task=attempt.task,
            revision=attempt.revision,
            replica=attempt.replica,
            turns=tuple(self.turns[start:]),
            success=last is not None and last.success,
            truncated=not (following or self.lost) and (not ended or (last is not None and last.truncated)),
            progress=None if last is None else last.progress,
            start=start,
            following=following,
            cut=self.cut,
            lost=self.lost,
        )


ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
Loop = Callable[[Sequence[ItemT], Event], list[ResultT]]
"""Function that plays some items until they are over or the event is set, and returns results in their order."""
LOOPS = 1024
"""Maximum number of loops at a time; further items wait for one that ends."""


class Playing(ABC):
    """Rollout worker of attempts in one environment; subclasses provide the answers.

    Attributes:
        env: the environment.
        max_turns: maximum number of turns per episode.
        alone: True if each episode has a loop of its own, in a thread; the environment is then used by one at a time
            unless it is ``concurrent``.
    """

    def __init__(self, env: Environment[object], max_turns: int, alone: bool = False) -> None:
        self.env = env
        self.max_turns = max_turns
        self.alone = alone
        self._guiding = Lock()
        self._using: AbstractContextManager[object] = nullcontext() if env.concurrent else Lock()

    def play(self, attempts: Sequence[Attempt]) -> list[Episode]:
        """Play every attempt to its end, or to ``max_turns``; return episodes in the order of the attempts."""
        counted = counting(f"{{over}} of {len(attempts)} episodes are over, {{waiting}} wait, {PROGRESS}")
        counted(waiting=len(attempts))
        return self.paced(partial(self._to_the_end, counted), attempts)

    def play_each(self, attempts: Iterable[Attempt], width: int, ended: Callable[[Episode], None]) -> None:
        """Play attempts, at most ``width`` at a time; where one ends, the next begins.

        Args:
            attempts: what to play; one is drawn when it begins.
            width: most attempts in progress.
            ended: called with each episode that is over, in the order in which they end.
        """
        waiting, taking, ending = iter(attempts), Lock(), Lock()

        def take(count: int) -> list[Attempt]:
            with taking:
                return list(islice(waiting, count))

        def end(live: Running) -> None:
            with ending:
                ended(live.part())

        self.paced(partial(self._in_turn, take, end), range(width))

    def _in_turn(
        self, take: Callable[[int], list[Attempt]], end: Callable[[Running], None], places: Sequence[int], halted: Event
    ) -> list[None]:
        running = list[Running]()
        try:
            while not halted.is_set() and (live := running + self.begin(take(len(places) - len(running)))):
                running = self.left(live)
                going = set(map(id, running))
                for each in live:
                    if id(each) not in going:
                        end(each)
                if running:
                    self.play_turn(running)
        finally:
            self.release(running)
        return []

    def paced(self, loop: Loop[ItemT, ResultT], items: Sequence[ItemT]) -> list[ResultT]:
        """Run one loop over all items, or one per item, according to the rollout worker's pace."""
        return each_alone(loop, items) if self.alone else in_step(loop, items)

    def _to_the_end(self, counted: Callable[..., None], attempts: Sequence[Attempt], halted: Event) -> list[Episode]:
        counted(waiting=-len(attempts))
        everyone = self.begin(attempts)
        running = self.left(everyone)
        counted(over=len(everyone) - len(running))
        try:
            while running and not halted.is_set():
                began = perf_counter()
                self.play_turn(running)
                played, running = running, self.left(running)
                spent = perf_counter() - began
                counted(over=len(played) - len(running), turns=len(played), slowest=spent)
        finally:
            self.release(running)
        return [live.part() for live in everyone]

    def begin(self, attempts: Sequence[Attempt]) -> list[Running]:
        """Start attempts; one is over at once if the environment fails to start it or to guide it."""
        with self._using:
            starts = self.env.try_start([attempt.task for attempt in attempts])
        with self._guiding:
            guides = [self.env.try_guide(attempt.task) for attempt in attempts]
        return list(map(Running.begun, attempts, starts, guides))

    def is_over(self, live: Running) -> bool:
        """Report whether the environment, the prompt's length, the turn limit or a failure ended the attempt."""
        return len(live.turns) >= self.max_turns or live.stopped

    def left(self, running: Sequence[Running]) -> list[Running]:
        """Attempts that continue; those that are over free their part of the environment."""
        self.release([live for live in running if self.is_over(live)])
        return [live for live in running if not self.is_over(live)]

    def release(self, ended: Sequence[Running]) -> None:
        """Free what the environment holds for attempts that are over."""
        with self._using:
            self.env.release([live.state for live in ended if live.state is not None])

    def step(self, running: Sequence[Running], actions: Sequence[str]) -> list[Step[object] | EpisodeFailure]:
        """The environment's answers to one action of each attempt, or its failures."""
        with self._using:
            return self.env.try_step([live.state for live in running], actions)

    @abstractmethod
    def play_turn(self, running: Sequence[Running]) -> None:
        """Play one turn of each attempt."""


class RolloutWorker(Playing):
    """Rollout worker of attempts with one policy in one environment."""

    def __init__(
        self, env: Environment[object], context: Context, engine: Engine, max_turns: int, alone: bool = False
    ) -> None:
        super().__init__(env, max_turns, alone)
        self.context = context
        self.engine = engine

    def is_over(self, live: Running) -> bool:
        """Report whether the attempt is over; so many unusable answers in a row as the configuration allows end it."""
        return super().is_over(live) or self.context.gives_up(turn.usable for turn in live.turns)

    def cut(self, live: Running) -> Episode:
        """Part of an attempt: the turns since its last cut. It is the last part if the next prompt is too long."""
        return live.part(self._fitting(live, live.moment(self.context)))

    def _fitting(self, live: Running, moment: Moment) -> tuple[int, ...]:
        """Prompt of the next turn; one that leaves no room for an answer cuts the attempt and is returned empty."""
        prompt = self.context.prompt(moment)
        live.cut = overlong(prompt, self.engine.longest_prompt)
        return () if live.cut else prompt

    def play_turn(self, running: Sequence[Running]) -> None:
        """Play one turn of each attempt whose prompt is not too long, all in one batch."""
        moments = [live.moment(self.context) for live in running]
        prompted = zip(running, moments, map(self._fitting, running, moments), strict=True)
        self._answer([(live, moment, prompt) for live, moment, prompt in prompted if prompt])

    def _answer(self, prompted: Sequence[tuple[Running, Moment, tuple[int, ...]]]) -> None:
        if not prompted:
            return
        began = perf_counter()
        running, moments, prompts = zip(*prompted, strict=True)
        completions = self.engine.generate(
            [
                Request(prompt, extend(live.attempt.key, len(live.turns)), self._group(live))
                for live, prompt in zip(running, prompts, strict=True)
            ]
        )
        drawing = perf_counter() - began
        answers = list(map(self.context.read, completions, moments))
        steps = self.step(running, [answer.action for answer in answers])
        spent = drawing, perf_counter() - began
        for live, prompt, completion, answer, step in zip(running, prompts, completions, answers, steps, strict=True):
            live.advance(prompt, completion, answer, step, spent)

    def _group(self, live: Running) -> str:
        """Name of the prompt's group; if lessons lead the prompt, a turn's own lessons are part of the shared start."""
        return group_of(live.attempt.task, live.shown) if self.context.leads else live.attempt.group


def in_step(loop: Loop[ItemT, ResultT], items: Sequence[ItemT]) -> list[ResultT]:
    """Play all items in one loop."""
    return loop(items, Event())


def each_alone(loop: Loop[ItemT, ResultT], items: Sequence[ItemT]) -> list[ResultT]:
    """Play each item in a loop of its own, in threads; return results in the order of the items.

    The first error is raised once the other loops have ended, each after the turn that it is in.
    """
    halted = Event()
    with ThreadPoolExecutor(max(1, min(len(items), LOOPS)), thread_name_prefix="episode") as threads:
        loops = [threads.submit(loop, [item], halted) for item in items]
        try:
            ended, _ = wait(loops, return_when=FIRST_EXCEPTION)
            for failed in filter(None, (future.exception() for future in ended)):
                raise failed
        finally:
            halted.set()
            threads.shutdown(cancel_futures=True)
    return [result for future in loops for result in future.result()]
