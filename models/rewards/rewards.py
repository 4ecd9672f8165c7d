"""What shaping makes of episodes, and the sums it is made with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from records.episode import Episode

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rewards:
    """Rewards of some episodes.

    Attributes:
        shaping: what each episode is worth beyond the environment's own reward, [episodes].
        turns: what each of its turns is worth, an array [turns] an episode.
        baselines: what the task's group once achieved, by task id; must be kept with the revision.
        metrics: figures that only this kind of reward leaves.
    """

    shaping: Floats
    turns: list[Floats]
    baselines: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)


def extrinsic_turns(episode: Episode) -> Floats:
    """The environment's reward of each turn, [turns]."""
    return np.array([turn.reward for turn in episode.turns], dtype=np.float64)


def spread(total: float, turns: int) -> Floats:
    """A total in equal shares, [turns]."""
    return np.full(turns, total / turns)


def discounted(turns: Floats, gamma: float) -> float:
    """Sum over t of gamma^t r_t (JERP Eq. 5)."""
    return float(turns @ gamma ** np.arange(len(turns)))


def discounting(episodes: Sequence[Episode], turns: Sequence[Floats], gamma: float) -> Floats:
    """What each episode's discounted sum is beyond its plain extrinsic one, [episodes]."""
    pairs = zip(episodes, turns, strict=True)
    return np.array([discounted(each, gamma) - episode.reward for episode, each in pairs], dtype=np.float64)
