"""Workers of this machine: processes, each with several live episodes.

A process serves one thread at a time. One that hangs is killed, one that dies is replaced. Only the episode that was
being served is blamed, if any: the others on that process are gone, and are opened anew elsewhere.
"""

import select
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from threading import Lock
from time import monotonic
from typing import Any, NamedTuple

from coevo.configs.simulator_config import SimulatorConfig
from coevo.envs.base import Step
from coevo.envs.failures import EpisodeFailure
from coevo.envs.stateful.interface import Opened, Opening, Simulator
from coevo.envs.stateful.process import WorkerProcess
from coevo.envs.stateful.wire import WorkerReply, most_bytes, read_reply, step_of

CLOSE_TIMEOUT_S = 5.0
"""Seconds in which all workers close their episodes before they are killed."""


class _Handle(NamedTuple):
    """A live episode: its process, and its number there."""

    process: WorkerProcess
    number: int


@dataclass(frozen=True, slots=True)
class _Job:
    """A request to a process.

    Attributes:
        process: process that serves it.
        request: JSON values.
        seconds: time limit.
    """

    process: WorkerProcess
    request: Mapping[str, Any]
    seconds: float


class _Pending(NamedTuple):
    """A request that a process has not answered: the number of its job, its time limit, and when that is over."""

    job: int
    seconds: float
    deadline: float


class LocalWorkers:
    """Worker processes of one simulator; each starts when it is first needed."""

    def __init__(self, simulator: Simulator, settings: SimulatorConfig, python: str | None = None) -> None:
        """Args:
        simulator: source of live episodes.
        settings: number of workers, and limits.
        python: interpreter of the workers; None for this one.
        """
        self._simulator, self._settings, self._python = simulator, settings, python
        self._numbers = count()
        self._alive: list[WorkerProcess] = []
        self._books = Lock()

    def start(self, openings: Sequence[Opening]) -> list[Opened | EpisodeFailure]:
        """Open episodes; one that fails is tried ``retries`` times more."""
        results: dict[int, Opened | EpisodeFailure] = {}
        failures = Counter[int]()
        while left := [index for index in range(len(openings)) if index not in results]:
            opened = self._open([openings[index] for index in left])
            for index, found in zip(left, opened, strict=True):
                failures[index] += isinstance(found, EpisodeFailure)
                if isinstance(found, Opened) or (found is not None and failures[index] > self._settings.retries):
                    results[index] = found
        return [results[index] for index in range(len(openings))]

    def act(self, handles: Sequence[object], actions: Sequence[str]) -> list[Step[None] | EpisodeFailure | None]:
        """Advance episodes by one action each; None for one whose process has ended."""
        jobs = [self._acting(handle, action) for handle, action in zip(_ours(handles), actions, strict=True)]
        return list(map(_step, self._run(jobs)))

    def close(self, handles: Sequence[object]) -> None:
        """Close episodes, side by side; a process that is serving closes its episodes afterwards."""
        with self._books:
            for process, number in _ours(handles):
                process.ended.append(number)
                process.episodes -= 1
        self._close_ended({handle.process for handle in _ours(handles)})

    def facts(self) -> Mapping[str, Any] | EpisodeFailure:
        """Description that the simulator gives of itself, from one process; see ``interface.Described``."""
        reply: WorkerReply | EpisodeFailure | None = None
        while reply is None:
            process = self._least()
            (reply,) = self._run([_Job(process, {"facts": True}, self._settings.open_seconds)])
            with self._books:
                process.episodes -= 1
        if isinstance(reply, WorkerReply) and reply.facts is not None:
            return reply.facts
        return reply if isinstance(reply, EpisodeFailure) else EpisodeFailure("invalid", "it says nothing of itself")

    def shutdown(self) -> None:
        """Let all processes close their episodes, side by side, and end those that exceed ``CLOSE_TIMEOUT_S``."""
        for process in self._alive:
            process.finish()
        give_up = monotonic() + CLOSE_TIMEOUT_S
        while self._alive:
            self._alive.pop().end(max(0.0, give_up - monotonic()))

    def _open(self, openings: Sequence[Opening]) -> list[Opened | EpisodeFailure | None]:
        """Open episodes once; None for one whose process ended because of another one.

        A following action is played before its process opens another episode, whose trouble would end this one.
        """
        handles = [_Handle(self._least(), next(self._numbers)) for _ in openings]
        begun = list(zip(handles, openings, strict=True))
        jobs = [job for each in begun for job in (self._opening(*each), *self._following(*each))]
        results = iter(self._run(jobs))
        opened: list[Opened | EpisodeFailure | None] = []
        for handle, opening in begun:
            reply, step = next(results), None if opening.following is None else _step(next(results))
            opened.append(_opened(handle, reply, step) if isinstance(reply, WorkerReply) else reply)
        # The process may hold an episode whose actions failed, or whose reply was refused.
        self.close([handle for handle, found in zip(handles, opened, strict=True) if not isinstance(found, Opened)])
        return opened

    def _least(self) -> WorkerProcess:
        """Process with the fewest episodes, which gets one more; a new one if there may be more."""
        with self._books:
            if len(self._alive) < self._settings.workers and all(process.episodes for process in self._alive):
                self._alive.append(WorkerProcess(self._simulator, next(self._numbers), self._python))
            process = min(self._alive, key=lambda process: process.episodes)
            process.episodes += 1
            return process

    def _opening(self, handle: _Handle, opening: Opening) -> _Job:
        task = {name: getattr(opening.task, name) for name in ("env", "kind", "instruction", "scope", "split")}
        request = {"number": handle.number, "task": task | {"data": dict(opening.task.data)}, "key": opening.key}
        seconds = self._settings.open_seconds + len(opening.actions) * self._settings.act_seconds
        return _Job(handle.process, request | {"actions": opening.actions}, seconds)

    def _following(self, handle: _Handle, opening: Opening) -> list[_Job]:
        return [] if opening.following is None else [self._acting(handle, opening.following)]

    def _acting(self, handle: _Handle, action: str) -> _Job:
        return _Job(handle.process, {"number": handle.number, "action": action}, self._settings.act_seconds)

    def _run(self, jobs: Sequence[_Job]) -> list[WorkerReply | EpisodeFailure | None]:
        """Serve jobs when their processes serve no other thread; None for a job whose process has ended before."""
        processes = sorted({job.process for job in jobs}, key=lambda process: process.number)
        with ExitStack() as held:
            for process in processes:
                held.enter_context(process.serving)
            results = self._serve(jobs)
        self._close_ended(processes)
        return results

    def _close_ended(self, processes: Iterable[WorkerProcess]) -> None:
        """Close ended episodes on the processes that are serving nobody; whoever is served looks here afterwards."""
        while free := [each for each in processes if each.ended and each.serving.acquire(blocking=False)]:
            try:
                self._serve([self._closing(process) for process in free])
            finally:
                for process in free:
                    process.serving.release()

    def _closing(self, process: WorkerProcess) -> _Job:
        with self._books:
            numbers, process.ended = process.ended, []
        return _Job(process, {"numbers": numbers}, self._settings.act_seconds)

    def _serve(self, jobs: Sequence[_Job]) -> list[WorkerReply | EpisodeFailure | None]:
        """Serve jobs, one at a time per process; None for those of a process that ended while it served nobody."""
        results: list[WorkerReply | EpisodeFailure | None] = [None] * len(jobs)
        queues: dict[WorkerProcess, deque[int]] = {}
        for index, job in enumerate(jobs):
            queues.setdefault(job.process, deque()).append(index)
        self._drop_ended(queues)
        busy: dict[WorkerProcess, _Pending] = {}
        try:
            while True:
                for process, queue in queues.items():
                    if queue and process not in busy and process in self._alive:
                        busy[process] = _begun(jobs, queue.popleft())
                if not busy:
                    return results
                for process in _ready(busy):
                    answer = self._answer(process, busy[process])
                    if answer is not None:
                        results[busy.pop(process).job] = answer
        except BaseException:
            for process in busy:  # nobody is left to read the answers of these
                self._drop(process)
            raise

    def _drop_ended(self, processes: Iterable[WorkerProcess]) -> None:
        """Drop the processes that have ended since their last answer."""
        for process in processes:
            if process in self._alive and process.ended_since_answer():
                self._drop(process)

    def _answer(self, process: WorkerProcess, pending: _Pending) -> WorkerReply | EpisodeFailure | None:
        """Answer of a process, or why there is none; None while it has time."""
        longest = self._settings.longest
        try:
            message = process.advance(most_bytes(longest))
        except EOFError:
            return EpisodeFailure("crash", f"its process ended with exit code {self._drop(process, grace=1.0)}")
        except ValueError:
            self._drop(process)
            return EpisodeFailure("invalid", f"an answer longer than env.simulator.longest={longest} allows")
        if message is not None:
            return read_reply(message, longest)
        if monotonic() < pending.deadline:
            return None
        self._drop(process)
        return EpisodeFailure("timeout", f"no answer in {pending.seconds:g} s")

    def _drop(self, process: WorkerProcess, grace: float = 0.0) -> int | None:
        with self._books:
            if process in self._alive:
                self._alive.remove(process)
        return process.end(grace)


def _begun(jobs: Sequence[_Job], index: int) -> _Pending:
    job = jobs[index]
    job.process.ask(job.request)
    return _Pending(index, job.seconds, monotonic() + job.seconds)


def _ready(busy: Mapping[WorkerProcess, _Pending]) -> list[WorkerProcess]:
    """Processes that can exchange something, and those whose time is up; waits for the first."""
    events = select.poll()
    for process in busy:
        events.register(process, select.POLLIN | (select.POLLOUT if process.sending else 0))
    left = min(pending.deadline for pending in busy.values()) - monotonic()
    ready = {descriptor for descriptor, _ in events.poll(1000 * max(0.0, left))}
    return [
        process for process, pending in busy.items() if process.fileno() in ready or monotonic() >= pending.deadline
    ]


def _ours(handles: Sequence[object]) -> list[_Handle]:
    return [handle for handle in handles if isinstance(handle, _Handle)]


def _opened(handle: _Handle, reply: WorkerReply, step: Step[None] | EpisodeFailure | None) -> Opened:
    return Opened(handle, reply.observation, reply.trace, step)


def _step(served: WorkerReply | EpisodeFailure | None) -> Step[None] | EpisodeFailure | None:
    if not isinstance(served, WorkerReply):
        return served
    return EpisodeFailure("invalid", "no step") if served.step is None else step_of(served.step)
