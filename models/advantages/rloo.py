"""Return minus the mean of the others in the group (REINFORCE leave-one-out)."""

from collections.abc import Sequence

import numpy as np

from coevo.configs.update.advantage_config import RlooConfig
from coevo.models.advantages.trajectory import (
    Advantages,
    Trajectory,
    centred,
    members,
    of_episodes,
    roundings,
    totals,
    used_rows,
)


def advantages(trajectories: Sequence[Trajectory], config: RlooConfig) -> Advantages:
    """R_i - mean of R_j over j != i, which is n / (n - 1) (R_i - mean); 0 in a group of one."""
    groups = [each.group for each in trajectories]
    values = centred(totals(trajectories), groups, roundings(trajectories))
    for group in members(groups):
        values[group] *= len(group) / np.maximum(len(group) - 1, 1)
    used = used_rows((values != 0.0).tolist(), groups, config.drop_zero_variance)
    return of_episodes(trajectories, values, used, centred=True)
