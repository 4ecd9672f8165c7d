"""Workers of this machine: processes of ``multiprocessing``, each with several live episodes.

A process serves one thread at a time. One that hangs is killed, one that dies is replaced. Only the episode that was
being served is blamed: the others on that process are gone, and are opened anew elsewhere. Processes come from a fork
server, which has no threads and ends with its run; they hash texts alike in every run, so that a simulator may iterate
over sets.
"""

import os
import signal
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import count
from json import dumps
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection, wait
from threading import Lock
from time import monotonic
from typing import Any, NamedTuple

from coevo.configs.env import SimulatorConfig
from coevo.configs.errors import CoevoError
from coevo.envs.base import Step
from coevo.envs.failures import Loss
from coevo.envs.stateful.interface import Opened, Opening, Simulator
from coevo.envs.stateful.wire import Reply, most_bytes, read_reply, step_of
from coevo.envs.stateful.worker import serve

GRACE = 5.0
"""Seconds in which a worker closes its episodes before it is killed."""


class _Process:
    """One worker process and the connection to it.

    Attributes:
        number: number of the process, in the order of their starts.
        ready: True once it reads requests; until then it imports the simulator.
        episodes: number of its live episodes.
        ended: numbers of episodes to close.
        serving: held by the thread that it serves.
    """

    def __init__(self, simulator: Simulator, number: int) -> None:
        self.number = number
        self.ready = False
        self.episodes = 0
        self.ended: list[int] = []
        self.serving = Lock()
        context = get_context("forkserver")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(simulator, theirs), daemon=True, name="coevo-simulator")
        try:
            self._process.start()
        except (TypeError, AttributeError, OSError) as error:
            raise CoevoError(f"the environment cannot be sent to worker processes: {error}: open in `open`") from error
        theirs.close()

    def end(self, grace: float = 0.0) -> int | None:
        """End the process and what it has started; return its exit code."""
        self.connection.close()
        self._process.join(grace)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        return self._process.exitcode


class _Handle(NamedTuple):
    """A live episode: its process, and its number there."""

    process: _Process
    number: int


@dataclass(frozen=True, slots=True)
class _Job:
    """A request to a process.

    Attributes:
        process: process that serves it.
        request: JSON values.
        seconds: time limit.
    """

    process: _Process
    request: Mapping[str, Any]
    seconds: float


class LocalWorkers:
    """Worker processes of one simulator; each starts when it is first needed."""

    def __init__(self, simulator: Simulator, settings: SimulatorConfig) -> None:
        self._simulator = simulator
        self._settings = settings
        self._numbers = count()
        self._alive: list[_Process] = []
        self._books = Lock()
        _start_server()

    def start(self, openings: Sequence[Opening]) -> list[Opened | Loss]:
        """Open episodes; one that fails is tried ``retries`` times more."""
        results: dict[int, Opened | Loss] = {}
        failures, left = Counter[int](), list(range(len(openings)))
        while left:
            opened = self._open([openings[index] for index in left])
            results |= {index: found for index, found in zip(left, opened, strict=True) if found is not None}
            failures.update(index for index in left if isinstance(results.get(index), Loss))
            left = [index for index in left if index not in results or 0 < failures[index] <= self._settings.retries]
            results = {index: found for index, found in results.items() if index not in left}
        return [results[index] for index in range(len(openings))]

    def act(self, handles: Sequence[object], actions: Sequence[str]) -> list[Step[None] | Loss | None]:
        """Advance episodes by one action each; None for one whose process has ended."""
        jobs = [
            _Job(handle.process, {"number": handle.number, "action": action}, self._settings.act_seconds)
            for handle, action in zip(_ours(handles), actions, strict=True)
        ]
        return [_step(served) if isinstance(served, Reply) else served for served in self._run(jobs)]

    def close(self, handles: Sequence[object]) -> None:
        """Close episodes, side by side; a process that is serving closes its episodes afterwards."""
        with self._books:
            for process, number in _ours(handles):
                process.ended.append(number)
                process.episodes -= 1
        self._close_ended({handle.process for handle in _ours(handles)})

    def shutdown(self) -> None:
        """Let every process close its episodes, and end it."""
        while self._alive:
            self._alive.pop().end(GRACE)

    def _open(self, openings: Sequence[Opening]) -> list[Opened | Loss | None]:
        """Open episodes once; None for one whose process ended because of another one."""
        handles = [_Handle(self._least(), next(self._numbers)) for _ in openings]
        jobs = [self._opening(handle, opening) for handle, opening in zip(handles, openings, strict=True)]
        served = dict(zip(handles, self._run(jobs), strict=True))
        # The process may hold an episode whose actions failed, or whose reply was refused.
        self.close([handle for handle, reply in served.items() if not isinstance(reply, Reply)])
        return [_opened(handle, reply) if isinstance(reply, Reply) else reply for handle, reply in served.items()]

    def _least(self) -> _Process:
        """Process with the fewest episodes, which gets one more; a new one if there may be more."""
        with self._books:
            if len(self._alive) < self._settings.workers and all(process.episodes for process in self._alive):
                self._alive.append(_Process(self._simulator, next(self._numbers)))
            process = min(self._alive, key=lambda process: process.episodes)
            process.episodes += 1
            return process

    def _opening(self, handle: _Handle, opening: Opening) -> _Job:
        task = {name: getattr(opening.task, name) for name in ("env", "kind", "instruction", "scope", "split")}
        request = {"number": handle.number, "task": task | {"data": dict(opening.task.data)}, "key": opening.key}
        seconds = self._settings.open_seconds + len(opening.actions) * self._settings.act_seconds
        return _Job(handle.process, request | {"actions": opening.actions}, seconds)

    def _run(self, jobs: Sequence[_Job]) -> list[Reply | Loss | None]:
        """Serve jobs when their processes serve no other thread; None for a job whose process has ended before."""
        processes = sorted({job.process for job in jobs}, key=lambda process: process.number)
        with ExitStack() as held:
            for process in processes:
                held.enter_context(process.serving)
            results = self._serve(jobs)
        self._close_ended(processes)
        return results

    def _close_ended(self, processes: Iterable[_Process]) -> None:
        """Close ended episodes on the processes that are serving nobody; whoever is served looks here afterwards."""
        while free := [each for each in processes if each.ended and each.serving.acquire(blocking=False)]:
            try:
                self._serve([self._closing(process) for process in free])
            finally:
                for process in free:
                    process.serving.release()

    def _closing(self, process: _Process) -> _Job:
        with self._books:
            numbers, process.ended = process.ended, []
        return _Job(process, {"numbers": numbers}, self._settings.act_seconds)

    def _serve(self, jobs: Sequence[_Job]) -> list[Reply | Loss | None]:
        """Serve jobs, one at a time per process."""
        results: list[Reply | Loss | None] = [None] * len(jobs)
        queues: dict[_Process, deque[int]] = {}
        for index, job in enumerate(jobs):
            queues.setdefault(job.process, deque()).append(index)
        busy: dict[Connection, tuple[int, float]] = {}
        idle = list(queues)
        try:
            while idle or busy:
                for process in idle:
                    if queues[process] and process in self._alive:
                        index = queues[process].popleft()
                        results[index] = self._send(jobs[index])
                        if results[index] is None:
                            busy[process.connection] = (index, monotonic() + jobs[index].seconds)
                idle = []
                for connection in _ready(busy):
                    index, _ = busy[connection]
                    results[index] = self._receive(jobs[index])
                    if results[index] is not None:
                        idle.append(jobs[busy.pop(connection)[0]].process)
        except BaseException:
            # Nobody is left to read the answers of these.
            for index, _ in busy.values():
                self._drop(jobs[index].process)
            raise
        return results

    def _send(self, job: _Job) -> Loss | None:
        """Send a job to a process that reads it; to one that does not yet, once it says that it is ready."""
        if not job.process.ready:
            return None
        try:
            job.process.connection.send_bytes(dumps(job.request).encode())
        except OSError:
            return self._ended(job.process)
        return None

    def _receive(self, job: _Job) -> Reply | Loss | None:
        """The answer to a job whose process has answered or is late; None if it was only sent the job now."""
        process = job.process
        try:
            if not process.connection.poll():
                self._drop(process)
                return Loss("timeout", f"no answer in {job.seconds:g} s")
            message = process.connection.recv_bytes(most_bytes(self._settings.longest))
        except (EOFError, ConnectionError):
            return self._ended(process)
        except OSError:
            self._drop(process)
            return Loss("invalid", f"an answer longer than env.simulator.longest={self._settings.longest} allows")
        if not process.ready:
            process.ready = True
            return self._send(job)
        return read_reply(message, self._settings.longest)

    def _ended(self, process: _Process) -> Loss:
        return Loss("crash", f"its process ended with exit code {self._drop(process, grace=1.0)}")

    def _drop(self, process: _Process, grace: float = 0.0) -> int | None:
        with self._books:
            if process in self._alive:
                self._alive.remove(process)
        return process.end(grace)


def _ready(busy: Mapping[Connection, tuple[int, float]]) -> list[Connection]:
    """Connections with an answer, and those whose time is up; waits for the first."""
    if not busy:
        return []
    first = min(deadline for _, deadline in busy.values())
    ready = {found for found in wait(list(busy), max(0.0, first - monotonic())) if isinstance(found, Connection)}
    return [each for each, (_, deadline) in busy.items() if each in ready or monotonic() >= deadline]


def _ours(handles: Sequence[object]) -> list[_Handle]:
    return [handle for handle in handles if isinstance(handle, _Handle)]


def _opened(handle: _Handle, reply: Reply) -> Opened:
    return Opened(handle, reply.observation, reply.trace)


def _step(reply: Reply) -> Step[None] | Loss:
    return Loss("invalid", "no step") if reply.step is None else step_of(reply.step)


def _start_server() -> None:
    """Start the fork server of this process, whose children hash texts alike."""
    before = os.environ.get("PYTHONHASHSEED")
    os.environ["PYTHONHASHSEED"] = "0"
    try:
        get_context("forkserver").set_forkserver_preload([serve.__module__])
        forkserver.ensure_running()
    finally:
        del os.environ["PYTHONHASHSEED"]
        if before is not None:
            os.environ["PYTHONHASHSEED"] = before
