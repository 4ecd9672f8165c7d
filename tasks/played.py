"""What was played for an iteration, and which iteration that is."""

from dataclasses import dataclass

from records.episode import Episode


@dataclass(frozen=True, slots=True)
class Position:
    """An iteration, and the revision that it is part of."""

    revision: int
    iteration: int


@dataclass(frozen=True, slots=True)
class Played:
    """The batch of an iteration, before anything of it counts.

    Attributes:
        episodes: in the order (task, replica), or of slots, then of time; with their clusters.
        metrics: figures of its retrieval that a repeated run gives again, bit for bit.
        rates: figures that it does not.
    """

    episodes: list[Episode]
    metrics: dict[str, float]
    rates: dict[str, float]
