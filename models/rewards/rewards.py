"""Rewards after shaping, and the sums that compute them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from coevo.records.arrays import Floats
from coevo.records.episode import Episode


@dataclass(frozen=True, slots=True)
class Rewards:
    """Rewards of some episodes.

    Attributes:
        shaping: reward of each episode in addition to the environment's own, [episodes].
        turns: reward of each turn, one array [turns] per episode.
        baselines: earlier success of the task's group, by task id; must be stored with the revision.
        metrics: figures of this kind of reward only, as ``policy/reward/<name>``.
    """

    shaping: Floats
    turns: list[Floats]
    baselines: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)


def unrewarded(outcomes: Sequence[tuple[bool, float]], bounds: tuple[float, float]) -> int:
    """Number of successes if none of them earns what a failure does not; 0 if success is worth something.

    Rewards below 0, as for every step, are worth something where failures lose more, or where more could be lost.

    Args:
        outcomes: success and return of each episode.
        bounds: lowest and highest return that the environment declares.
    """
    returns: dict[bool, list[float]] = {True: [], False: []}
    for success, earned in outcomes:
        returns[success].append(earned)
    won, lost = returns[True], returns[False]
    if not won:
        return 0
    if lost:
        worthless = max(won) <= min(0.0, max(lost)) or min(won + lost) == max(won + lost)
    else:
        worthless = max(won) <= bounds[0] or (not any(won) and bounds[1] > 0)
    return len(won) * worthless


def extrinsic_turns(episode: Episode) -> Floats:
    """Environment's reward of each turn, [turns]."""
    return np.array([turn.reward for turn in episode.turns], dtype=np.float64)


def spread(total: float, turns: int) -> Floats:
    """Equal shares of a total, [turns]."""
    return np.full(turns, total / turns)


def discounted(turns: Floats, gamma: float) -> float:
    """Sum over t of gamma^t r_t (JERP Eq. 5)."""
    return float(turns @ gamma ** np.arange(len(turns)))


def discounting(episodes: Sequence[Episode], turns: Sequence[Floats], gamma: float) -> Floats:
    """Difference between each episode's discounted sum and its plain extrinsic sum, [episodes]."""
    pairs = zip(episodes, turns, strict=True)
    return np.array([discounted(each, gamma) - episode.reward for episode, each in pairs], dtype=np.float64)
