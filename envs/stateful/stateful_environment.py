"""Environments over stateful simulators.

A state of such an environment is a ``SimulatorPosition``: the task and the actions so far, with a claim on the live
episode that is there. The claim can be used once. So a step from a position either continues the live episode, or opens
another one and plays the actions again; equal positions never share an episode, and old ones stay as they are.
"""

import weakref
from abc import abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

from coevo.configs.simulator_config import SimulatorConfig
from coevo.envs.base import Environment, Step
from coevo.envs.failures import EpisodeFailure, sound
from coevo.envs.stateful.interface import Live, Opened, Opening, Workers
from coevo.envs.stateful.local_workers import LocalWorkers
from coevo.envs.stateful.wire import digest, plain
from coevo.records.draws import Key, key
from coevo.records.task import Task

_FIRST = Lock()
"""Held by the thread that may create an environment's workers, or its list of handles to close."""


class Claim:
    """Claim of one position on a live episode; one that is never used is handed to ``discard``."""

    def __init__(self, handle: object, discard: Callable[[object], None]) -> None:
        self._unused = weakref.finalize(self, discard, handle)
        self._unused.atexit = False

    def take(self) -> object | None:
        """Handle of the episode, for the first caller; None for every other one."""
        found = self._unused.detach()
        return None if found is None else found[2][0]


@dataclass(frozen=True)
class SimulatorPosition:
    """State of a stateful environment.

    Attributes:
        task: the task.
        actions: actions so far.
        trace: digest of what the simulator returned to them.
        claim: claim on the live episode.
    """

    task: Task
    actions: tuple[str, ...]
    trace: str
    claim: Claim | None = field(compare=False, repr=False)


class StatefulEnvironment(Environment[SimulatorPosition]):
    """Environment over a stateful simulator, which runs in worker processes.

    A subclass implements ``open``, ``sample`` and ``panel``. The draws of a simulator come from the ``key`` that
    ``open`` gets, a function of the task: an episode is decided by its task and actions. Declare ``repeats = False`` if
    that cannot be; ``coevo envs check`` finds out. A subclass must be importable, and its attributes picklable.
    """

    simulator: SimulatorConfig = SimulatorConfig()
    """Number of workers, and limits."""
    python: str | None = None
    """Python interpreter of the workers; None for this one."""
    concurrent = True

    @abstractmethod
    def open(self, task: Task, key: Key) -> tuple[Live, str] | Awaitable[tuple[Live, str]]:
        """Start an episode in a worker process; return it with its first observation. It may be a coroutine."""

    def start(self, task: Task) -> tuple[SimulatorPosition, str]:
        """First position and observation of a task.

        Raises:
            EpisodeLostError: the simulator failed.
        """
        (started,) = self.try_start([task])
        return sound(started)

    def step(self, states: Sequence[SimulatorPosition], actions: Sequence[str]) -> list[Step[SimulatorPosition]]:
        """Advance a batch of episodes by one action each, side by side.

        Raises:
            EpisodeLostError: the simulator failed in one of them.
        """
        return [sound(step) for step in self.try_step(states, actions)]

    def try_start(self, tasks: Sequence[Task]) -> list[tuple[SimulatorPosition, str] | EpisodeFailure]:
        """First position and observation of each task, or why the simulator failed."""
        self._drain()
        with _FIRST:
            workers = self.workers
        opened = workers.start([Opening(task, _key(task)) for task in tasks])
        return [self._begun(task, found) for task, found in zip(tasks, opened, strict=True)]

    def try_step(
        self, states: Sequence[SimulatorPosition], actions: Sequence[str]
    ) -> list[Step[SimulatorPosition] | EpisodeFailure]:
        """Advance each episode by one action, or return why the simulator failed."""
        self._drain()
        claimed = {index: state.claim.take() for index, state in enumerate(states) if state.claim is not None}
        handles = {index: handle for index, handle in claimed.items() if handle is not None}
        results = self._acted(handles, states, actions)
        while len(results) < len(states):
            # Those whose live episode is gone, also because of another one on its worker, are opened again.
            gone = [index for index in range(len(states)) if index not in results]
            found = self._opened([states[index] for index in gone], [actions[index] for index in gone])
            opened = dict(zip(gone, found, strict=True))
            for index, each in opened.items():
                if isinstance(each, EpisodeFailure):
                    results[index] = each
                elif each.step is not None:
                    results[index] = self._moved(states[index], actions[index], each.handle, each.step)
            rest = {index: each.handle for index, each in opened.items() if isinstance(each, Opened) and not each.step}
            results |= self._acted(rest, states, actions)
        return [results[index] for index in range(len(states))]

    def release(self, states: Sequence[SimulatorPosition]) -> None:
        """Close the live episodes of these positions."""
        handles = [state.claim.take() for state in states if state.claim is not None]
        self._left.extend(handle for handle in handles if handle is not None)
        self._drain()

    def close(self) -> None:
        """End the worker processes."""
        if "workers" in self.__dict__:
            self.__dict__.pop("workers").shutdown()

    @cached_property
    def workers(self) -> Workers:
        """Workers of this machine; set the attribute to use others."""
        return LocalWorkers(self, self.simulator, self.python)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("workers", "_left")}

    @cached_property
    def _left(self) -> deque[object]:
        """Handles to close; positions that are garbage add theirs from any thread."""
        return deque()

    def _drain(self) -> None:
        """Close what was left."""
        handles = []
        with _FIRST, suppress(IndexError):
            while True:
                handles.append(self._left.popleft())
        if handles:
            self.workers.close(handles)

    def _begun(self, task: Task, opened: Opened | EpisodeFailure) -> tuple[SimulatorPosition, str] | EpisodeFailure:
        if isinstance(opened, EpisodeFailure):
            return opened
        return SimulatorPosition(task, (), opened.trace, Claim(opened.handle, self._left.append)), opened.observation

    def _acted(
        self, handles: Mapping[int, object], states: Sequence[SimulatorPosition], actions: Sequence[str]
    ) -> dict[int, Step[SimulatorPosition] | EpisodeFailure]:
        """Steps of live episodes, by index; none of one whose worker has ended because of another one."""
        acted = self.workers.act(list(handles.values()), [actions[index] for index in handles]) if handles else []
        return {
            index: self._moved(states[index], actions[index], handle, step)
            for (index, handle), step in zip(handles.items(), acted, strict=True)
            if step is not None
        }

    def _opened(self, states: Sequence[SimulatorPosition], actions: Sequence[str]) -> list[Opened | EpisodeFailure]:
        """Open episodes that are not live, play their actions again, and then an action of each."""
        if not self.repeats:
            return [EpisodeFailure("crash", f"{self.name} does not repeat, and its live episode is gone")] * len(states)
        opened = self.workers.start(
            [
                Opening(state.task, _key(state.task), state.actions, action)
                for state, action in zip(states, actions, strict=True)
            ]
        )
        return [self._checked(state, found) for state, found in zip(states, opened, strict=True)]

    def _checked(self, state: SimulatorPosition, opened: Opened | EpisodeFailure) -> Opened | EpisodeFailure:
        if isinstance(opened, EpisodeFailure) or opened.trace == state.trace:
            return opened
        self._left.append(opened.handle)
        return EpisodeFailure(
            "invalid", f"{self.name} does not repeat: equal actions gave other steps; set repeats = False"
        )

    def _moved(
        self, state: SimulatorPosition, action: str, handle: object, step: Step[None] | EpisodeFailure
    ) -> Step[SimulatorPosition] | EpisodeFailure:
        """The step with its position; the episode is closed where it ends."""
        if isinstance(step, EpisodeFailure) or step.done:
            self._left.append(handle)
        if isinstance(step, EpisodeFailure):
            return step
        values, claim = plain(step), None if step.done else Claim(handle, self._left.append)
        position = SimulatorPosition(state.task, (*state.actions, action), digest(state.trace, values), claim)
        return Step(position, **values)


def _key(task: Task) -> Key:
    """Root of the simulator's draws in an episode of a task."""
    return key("simulator", task.id)
