"""The interface of an environment: behaviour only, all data travels in tasks and states.

A new environment subclasses ``Environment``, implements its abstract methods and registers under the entry-point
group ``coevo.envs`` (or is named ``package.module:Class`` in the configuration).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from configs.errors import CoevoError
from records.demonstration import Answer, Demonstration, Moment
from records.draws import Key
from records.entry import Entry
from records.task import Panel, Task

State = TypeVar("State")


class MissingPartError(CoevoError):
    """An optional part that this environment lacks."""


@dataclass(frozen=True, slots=True)
class Step(Generic[State]):
    """What one action led to.

    Attributes:
        state: the new state; the one that was stepped from is left as it was.
        observation: what the agent sees next.
        feedback: what the environment answers to the action.
        reward: extrinsic reward of the action.
        done: whether the episode is over.
        success: whether the task is solved; only ever true with ``done``.
        valid: whether the action was understood.
        truncated: whether a limit, not the task, ended the episode.
        progress: ground-truth fraction of the task completed, None where unknown.
    """

    state: State
    observation: str
    feedback: str
    reward: float
    done: bool
    success: bool
    valid: bool = True
    truncated: bool = False
    progress: float | None = None


class Environment(ABC, Generic[State]):
    """A family of text tasks. Instances are immutable and may be shared."""

    name: ClassVar[str]
    """Registered name."""
    version: ClassVar[str]
    """Changes whenever the same task would play differently."""
    panels: ClassVar[Mapping[str, str]]
    """Held-out panels by name, each with a few words on what it asks."""
    has_expert: ClassVar[bool] = False
    """Whether ``advise`` answers."""
    expert_guesses: ClassVar[bool] = True
    """Whether its answers are guesses in part, so that its episodes of one task differ."""
    reward_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    """Bounds of an episode's extrinsic return."""

    @abstractmethod
    def sample(self, count: int, key: Key) -> list[Task]:
        """``count`` training tasks, a function of ``key`` alone; none of them is in a panel."""

    @abstractmethod
    def panel(self, name: str, size: int) -> Panel:
        """A held-out panel, the same at every call. Raises ``CoevoError`` for an unknown name."""

    @abstractmethod
    def start(self, task: Task) -> tuple[State, str]:
        """The task's first state and observation."""

    @abstractmethod
    def step(self, states: Sequence[State], actions: Sequence[str]) -> list[Step[State]]:
        """Advance a batch of episodes by one action each; an unreadable action is a step with ``valid=False``."""

    def vocabulary(self) -> tuple[str, ...]:
        """Every word a prompt or answer can hold, for word-level policies; empty where there is no such list."""
        return ()

    def expert(self, moment: Moment, key: Key) -> Answer:
        """What an expert that knows no more than ``moment`` answers; ``key`` decides its guesses."""
        raise MissingPartError(f"{self.name} has no expert")

    def advise(self, state: State, moment: Moment, key: Key) -> Answer:
        """What the expert answers in a state, shown as ``moment``; one that has watched the episode may know more."""
        return self.expert(moment, key)

    def demonstrations(self, episodes: int, drills: int, key: Key) -> list[Demonstration]:
        """Expert material of worlds that are never trained or evaluated in, for warm starts."""
        raise MissingPartError(f"{self.name} has no demonstrations: set warmstart=null")

    def probe(self, size: int, key: Key) -> "Probe":
        """Tasks of a fresh world with right and with wrong lessons: does a policy read what it is given?"""
        raise MissingPartError(f"{self.name} has no reading probe: set warmstart=null")

    def panel_bank(self, panel: str) -> list[Entry] | None:
        """The bank that a panel is played with: None for the run's own, an empty list for none at all."""
        return None


@dataclass(frozen=True, slots=True)
class Probe:
    """A reading probe: the same tasks twice, with lessons that hold and with lessons that do not.

    Attributes:
        tasks: what is played.
        right: for each task, lessons true in its world.
        wrong: for each task, lessons of the same shape that are false there; empty where there is nothing to read.
    """

    tasks: tuple[Task, ...]
    right: tuple[tuple[str, ...], ...]
    wrong: tuple[tuple[str, ...], ...]
