"""Groups: episodes of one task, or steps of one state, that are compared with each other."""

from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from coevo.models.advantages.trajectory import rounding
from coevo.records.arrays import Floats


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
