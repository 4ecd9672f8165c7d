"""Interfaces of stateful environments: a live episode, and the workers that host live episodes.

``Workers`` is all that an environment knows of the machine. ``LocalWorkers`` implements it with processes here; another
engine may implement it with other machines.
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from coevo.envs.base import Step
from coevo.envs.failures import EpisodeFailure
from coevo.records.draws import Key
from coevo.records.task import Task


class Live(Protocol):
    """One running episode of a simulator. It may be slow, hang, or take its process with it.

    Its methods may be coroutines: its worker awaits them on one event loop, which runs only while it does.
    """

    def act(self, action: str) -> Step[Any] | Awaitable[Step[Any]]:
        """Result of one action; ``state`` is ignored, write ``None``."""
        ...

    def close(self) -> Awaitable[None] | None:
        """Free everything that the episode holds; called once, unless its process died."""
        ...


class Simulator(Protocol):
    """Source of live episodes. Workers get a pickled copy."""

    def open(self, task: Task, key: Key) -> tuple[Live, str] | Awaitable[tuple[Live, str]]:
        """Start an episode; return it with its first observation. It may be a coroutine, as methods of ``Live``."""
        ...


@runtime_checkable
class Described(Protocol):
    """A simulator that says of itself what its environment has to know before any episode."""

    def facts(self) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
        """JSON values by name. It may be a coroutine."""
        ...


@dataclass(frozen=True, slots=True)
class Opening:
    """Episode to open.

    Attributes:
        task: task of the episode.
        key: root of the simulator's draws.
        actions: actions to play after the start.
        following: action to play after these, as ``Workers.act`` does; None for none.
    """

    task: Task
    key: Key
    actions: tuple[str, ...] = ()
    following: str | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A live episode after its actions.

    Attributes:
        handle: names the episode to its workers.
        observation: first observation.
        trace: digest of the observation and all steps, see ``wire.digest``.
        step: result of the following action; None where it was not played.
    """

    handle: object
    observation: str
    trace: str
    step: Step[None] | EpisodeFailure | None = None


class Workers(Protocol):
    """Hosts of live episodes. Results do not depend on their number, nor on the order of a batch."""

    def start(self, openings: Sequence[Opening]) -> list[Opened | EpisodeFailure]:
        """Open episodes, side by side."""
        ...

    def act(self, handles: Sequence[object], actions: Sequence[str]) -> list[Step[None] | EpisodeFailure | None]:
        """Advance episodes by one action each; None for one that ended because of another one on its worker."""
        ...

    def close(self, handles: Sequence[object]) -> None:
        """Close episodes; unknown and closed ones are ignored."""
        ...

    def shutdown(self) -> None:
        """Close all episodes and end all workers."""
        ...
