"""Input and output of estimators: episodes in numbers, their groups, and their advantages."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coevo.records.arrays import Floats

NONE = np.zeros(0)
TOLERANCE: Final = 1e-6
"""Difference that rounding explains, as a share of the largest reward: eight units in the last place of float32."""
UNITS: Final = 4
"""The same for rewards of float16, in units of their last place, which are coarser."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One episode in numbers; tokens are its action tokens, turn after turn.

    Attributes:
        group: its task id.
        value: shaped return of the whole episode.
        rewards: of each turn, [turns].
        lengths: action tokens of each turn, at least one, [turns].
        anchors: identity of each turn's observation, [turns]; equal ones are comparable, None with no other.
        penalties: KL penalty of each token, [tokens]; empty if KL is not in the reward.
        values: of the state before each token, [tokens]; empty without a critic.
        bootstrap: value of the state after the last turn; 0 after a true end.
    """

    group: str
    value: float
    rewards: Floats
    lengths: tuple[int, ...]
    anchors: tuple[Hashable, ...] = ()
    penalties: Floats = field(default_factory=lambda: NONE)
    values: Floats = field(default_factory=lambda: NONE)
    bootstrap: float = 0.0

    @property
    def tokens(self) -> int:
        """Number of action tokens."""
        return sum(self.lengths)

    @property
    def rounding(self) -> float:
        """Largest difference from another return that rounding explains."""
        return rounding(self.value, self.rewards, self.penalties)

    @property
    def total(self) -> float:
        """Return minus the KL penalties."""
        return self.value - float(self.penalties.sum())

    def per_turn(self) -> Floats:
        """Rewards of the turns minus their tokens' KL penalties, [turns]."""
        if not self.penalties.size:
            return self.rewards
        return self.rewards - np.add.reduceat(self.penalties, self.starts())

    def starts(self) -> NDArray[np.intp]:
        """Index of each turn's first token, [turns]."""
        return np.cumsum((0, *self.lengths[:-1]))


@dataclass(frozen=True, slots=True)
class Advantages:
    """Advantages of an update.

    Attributes:
        episodes: of each episode as a whole, [episodes]; the mean over its tokens if the estimator works on tokens.
        tokens: of each action token, one array [tokens] per episode.
        used: mask of episodes that enter the update, [episodes].
        centred: True if ``episodes`` has mean 0 in each group by construction.
        returns: target of the critic before each token, shaped like ``tokens``; empty without a critic.
        metrics: figures of this estimator only, as ``policy/advantage/<name>``.
    """

    episodes: Floats
    tokens: list[Floats]
    used: NDArray[np.bool_]
    centred: bool
    returns: list[Floats] = field(default_factory=list)
    metrics: Mapping[str, float] = field(default_factory=dict)


def of_episodes(
    trajectories: Sequence[Trajectory], episodes: Floats, used: NDArray[np.bool_], centred: bool
) -> Advantages:
    """Create advantages of one value per episode, equal for all of its tokens."""
    pairs = zip(trajectories, episodes.tolist(), strict=True)
    return Advantages(episodes, [np.full(each.tokens, value) for each, value in pairs], used, centred)


def totals(trajectories: Sequence[Trajectory]) -> Floats:
    """Return of each episode, [episodes]."""
    return np.array([each.total for each in trajectories], dtype=np.float64)


def roundings(trajectories: Sequence[Trajectory]) -> Floats:
    """Largest difference between returns that rounding explains, of each episode, [episodes]."""
    return np.array([each.rounding for each in trajectories], dtype=np.float64)


def rounding(*rewards: ArrayLike) -> float:
    """Largest difference between sums of these rewards that rounding explains: a share of the largest |reward|."""
    return max((_relative(each) * float(np.abs(each).max(initial=0)) for each in map(np.asarray, rewards)), default=0.0)


def _relative(rewards: NDArray[Any]) -> float:
    narrow = np.issubdtype(rewards.dtype, np.floating)
    return max(TOLERANCE, UNITS * float(np.finfo(rewards.dtype).eps)) if narrow else TOLERANCE


def members(groups: Sequence[Hashable]) -> Iterator[NDArray[np.intp]]:
    """Indices of each group's members; groups in the order of their first member."""
    found: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        found.setdefault(group, []).append(index)
    yield from (np.array(each) for each in found.values())


def varies(values: Floats, slack: float | None = None) -> bool:
    """True if values differ by more than rounding.

    Sums of the same rewards in another order, or in another precision, differ by rounding; divided by their standard
    deviation, such differences would be as large as any.

    Args:
        values: returns that are compared.
        slack: largest difference that rounding explains; None takes it from the values, which is too little where
            they are small sums of large rewards.
    """
    return len(values) > 0 and float(np.ptp(values)) > (rounding(values) if slack is None else slack)


def centred(values: Floats, groups: Sequence[Hashable], slack: Floats | None = None) -> Floats:
    """Each value minus its group's mean; 0 in groups without variance, [values].

    Args:
        values: returns.
        groups: group of each.
        slack: largest difference that rounding of its rewards explains, of each value; that of a group is the largest.
    """
    result = np.zeros(len(values))
    for group in members(groups):
        if _varies(values, group, slack):
            result[group] = values[group] - values[group].mean()
    return result


def normalised(
    values: Floats, groups: Sequence[Hashable], ddof: int, epsilon: float, slack: Floats | None = None
) -> Floats:
    """(value - mean) / (std + epsilon) within each group; 0 in groups without variance, [values]."""
    result = centred(values, groups, slack)
    for group in members(groups):
        if result[group].any():
            result[group] /= values[group].std(ddof=ddof) + epsilon
    return result


def zero_variance(values: Floats, groups: Sequence[Hashable], slack: Floats | None = None) -> NDArray[np.bool_]:
    """Mask of values in groups without variance: groups of one, or of equal values, [values]."""
    mask = np.zeros(len(values), dtype=np.bool_)
    for group in members(groups):
        mask[group] = not _varies(values, group, slack)
    return mask


def _varies(values: Floats, group: NDArray[np.intp], slack: Floats | None) -> bool:
    return varies(values[group], None if slack is None else float(slack[group].max()))


def used_rows(moved: Sequence[bool], groups: Sequence[Hashable], drop: bool) -> NDArray[np.bool_]:
    """Mask of episodes that enter the update: all, or with ``drop`` the groups in which any moved, [episodes]."""
    touched = np.asarray(moved, dtype=np.bool_)
    mask = np.full(len(touched), not drop)
    for group in members(groups):
        mask[group] |= touched[group].any()
    return mask
