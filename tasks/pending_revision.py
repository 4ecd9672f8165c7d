"""The revision in the making, the results of steps that it records, and the position of an iteration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from coevo.memory.admission.pending_admission import Pending
from coevo.models.advantages.trajectory import Advantages
from coevo.models.rewards import Rewards
from coevo.records.episode import Episode

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Result(Generic[T_co]):
    """Value of a step and its metrics, by full name.

    Attributes:
        value: handed to the next step.
        metrics: equal, bit for bit, when the run is repeated.
        rates: measured in time, different in every run.
        spent: cost of learning, see ``cost``.
    """

    value: T_co
    metrics: Mapping[str, float] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    spent: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HeldOutEpisode:
    """An episode of a held-out panel that a revision keeps.

    Attributes:
        panel: name of the panel.
        episode: the episode.
        reason: why it failed, a ``FailureReason``; empty for a success.
        lessons: part of the lessons in the failure, a ``LessonUse``; empty for a success.
    """

    panel: str
    episode: Episode
    reason: str
    lessons: str


@dataclass(frozen=True, slots=True)
class PanelOutcomes:
    """Outcomes of a held-out panel.

    Attributes:
        panel: hash of the panel.
        solved: ``1``, ``0`` or ``-`` (lost) for each of its tasks, in order.
        kept: the episodes that the revision keeps, in the same order.
    """

    panel: str
    solved: str
    kept: tuple[HeldOutEpisode, ...] = ()


@dataclass
class PendingRevision:
    """The revision in the making. Nothing of it is shared before the commit.

    Attributes:
        revision: its number.
        episodes: training episodes, in the order (iteration, task, replica).
        metrics: equal, bit for bit, when the run is repeated.
        rates: measured in time.
        outcomes: by panel.
        proposed: a decision that a person has to approve before it changes the bank.
    """

    revision: int
    episodes: list[Episode] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    outcomes: dict[str, PanelOutcomes] = field(default_factory=dict)
    proposed: Pending | None = None

    def record(self, result: Result[T]) -> T:
        """Record metrics, rates and cost of a step. Returns the step's value."""
        self.metrics |= result.metrics
        self.rates |= result.rates
        self.metrics |= {name: self.metrics.get(name, 0.0) + count for name, count in result.spent.items()}
        return result.value

    def measure(self, result: Result[dict[str, PanelOutcomes]]) -> None:
        """Record an evaluation with its outcomes."""
        outcomes: Mapping[str, PanelOutcomes] = self.record(result)
        self.outcomes |= outcomes


def cost(episodes: Sequence[Episode]) -> dict[str, int]:
    """Episodes and tokens played for learning, replays included; held-out evaluation costs nothing.

    An episode counts where it ends. Tokens are those of every prompt and of every completion: experience in a prompt
    costs too. The manifest keeps both, so that runs can be compared at equal cost.
    """
    turns = [turn for episode in episodes for turn in episode.turns]
    return {
        "cost/episodes": sum(not episode.following for episode in episodes),
        "cost/tokens": sum(len(turn.prompt_ids) + len(turn.completion.token_ids) for turn in turns),
    }


def apart(spent: Mapping[str, int], part: str) -> dict[str, int]:
    """Cost with the episodes and tokens of a part, such as ``judging``, under names of their own as well."""
    return {**spent, **under(spent, part)}


def under(spent: Mapping[str, int], part: str) -> dict[str, int]:
    """Episodes and tokens under the names of a part alone: cost that no budget contains, unless it is also counted."""
    kinds = ("episodes", "tokens")
    return {f"cost/{part}/{kind}": spent[f"cost/{kind}"] for kind in kinds if f"cost/{kind}" in spent}


@dataclass(frozen=True, slots=True)
class Position:
    """An iteration and its revision."""

    revision: int
    iteration: int


@dataclass(frozen=True, slots=True)
class PlayedBatch:
    """The batch of an iteration, before rewards.

    Attributes:
        episodes: in the order (task, replica), or of slots, then of time; with their clusters.
        metrics: metrics of its retrieval, which a repeated run reproduces bit for bit.
        rates: metrics that vary between repeated runs, such as times.
    """

    episodes: list[Episode]
    metrics: dict[str, float]
    rates: dict[str, float]


@dataclass(frozen=True, slots=True)
class Shaped:
    """Episodes with their shaping, and the rewards of their turns.

    Attributes:
        episodes: those that policy and bank learn from.
        rewards: theirs.
        rest: lost episodes, and those whose first prompt was too long.
    """

    episodes: list[Episode]
    rewards: Rewards
    rest: list[Episode]


@dataclass(frozen=True, slots=True)
class Targets:
    """Targets of the update: advantages, and the critic's value before each token of each episode."""

    advantages: Advantages
    values: list[NDArray[np.float64]]
