"""Advantages: what an episode's return says about it, compared with the other rollouts of its task.

``ESTIMATORS`` maps a configuration's ``type`` to its estimator. Baselines are per episode: a long episode does not
weigh more than a short one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from configs.update import GrpoConfig

Returns = NDArray[np.float64]
Estimator = Callable[[Returns, Sequence[str], GrpoConfig], Returns]

ROUNDING: Final = 1e-9
"""Returns closer than this are equal: sums of the same rewards in another order differ by rounding."""


def estimate(returns: Returns, groups: Sequence[str], config: GrpoConfig) -> Returns:
    """One advantage an episode by the configured estimator, [episodes].

    Args:
        returns: shaped return of each episode, [episodes].
        groups: the episodes' groups (task ids), in any order and of any sizes.
        config: which estimator, and its settings.
    """
    return ESTIMATORS[config.type](returns, groups, config)


def grpo(returns: Returns, groups: Sequence[str], config: GrpoConfig) -> Returns:
    """(R - mean) / (std + epsilon) within each group (CoEvo-RL Eq. 6); 0 where ``zero_variance``."""
    advantages = np.zeros(len(returns))
    for members in _members(groups):
        values = returns[members]
        if _varies(values):
            advantages[members] = (values - values.mean()) / (values.std(ddof=config.ddof) + config.epsilon)
    return advantages


def zero_variance(returns: Returns, groups: Sequence[str]) -> NDArray[np.bool_]:
    """Which episodes are in a group that teaches nothing: of one, or with equal returns, [episodes]."""
    mask = np.zeros(len(returns), dtype=np.bool_)
    for members in _members(groups):
        mask[members] = not _varies(returns[members])
    return mask


ESTIMATORS: Final[dict[str, Estimator]] = {"grpo": grpo}


def _members(groups: Sequence[str]) -> Iterator[NDArray[np.intp]]:
    names, index = np.unique(np.asarray(groups, dtype=np.str_), return_inverse=True)
    for group in range(len(names)):
        yield np.flatnonzero(index == group)


def _varies(values: Returns) -> bool:
    return bool(np.ptp(values) > ROUNDING)
