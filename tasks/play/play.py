"""Playing episodes: a batch of attempts, turn by turn; an attempt leaves the batch when it is over."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice
from threading import Event, Lock
from typing import TypeVar

from coevo.envs.base import Environment, Step
from coevo.envs.failures import EpisodeFailure
from coevo.models.engines.requests import Engine, Request
from coevo.models.policy.context import Context
from coevo.records.demonstration import Moment
from coevo.records.draws import extend
from coevo.records.episode import Episode
from coevo.tasks.play.attempt import Attempt, Running, group_of, overlong
from coevo.tasks.publish.reporter import counting

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
Loop = Callable[[Sequence[ItemT], Event], list[ResultT]]
"""Function that plays some items until they are over or the event is set, and returns results in their order."""
LOOPS = 1024
"""Maximum number of loops at a time; further items wait for one that ends."""


class Playing(ABC):
    """Player of attempts in one environment; subclasses provide the answers.

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
        counted = counting(f"{{over}} of {len(attempts)} episodes are over, {{turns}} turns played")
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
        """Run one loop over all items, or one per item, according to the player's pace."""
        return each_alone(loop, items) if self.alone else in_step(loop, items)

    def _to_the_end(self, counted: Callable[..., None], attempts: Sequence[Attempt], halted: Event) -> list[Episode]:
        everyone = self.begin(attempts)
        running = self.left(everyone)
        counted(over=len(everyone) - len(running))
        try:
            while running and not halted.is_set():
                self.play_turn(running)
                played, running = running, self.left(running)
                counted(over=len(played) - len(running), turns=len(played))
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


class Player(Playing):
    """Player of attempts with one policy in one environment."""

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
        running, moments, prompts = zip(*prompted, strict=True)
        completions = self.engine.generate(
            [
                Request(prompt, extend(live.attempt.key, len(live.turns)), self._group(live))
                for live, prompt in zip(running, prompts, strict=True)
            ]
        )
        answers = list(map(self.context.read, completions, moments))
        steps = self.step(running, [answer.action for answer in answers])
        for live, prompt, completion, answer, step in zip(running, prompts, completions, answers, steps, strict=True):
            live.advance(prompt, completion, answer, step)

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
