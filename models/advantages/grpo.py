"""Group-relative advantages with mean and standard deviation (CoEvo-RL Eq. 6, JERP Eq. 17 to 19)."""

from collections.abc import Sequence

from coevo.configs.update.advantage_config import GrpoConfig
from coevo.models.advantages.trajectory import (
    Advantages,
    Trajectory,
    normalised,
    of_episodes,
    roundings,
    totals,
    used_rows,
)


def advantages(trajectories: Sequence[Trajectory], config: GrpoConfig) -> Advantages:
    """(R - mean) / (std + epsilon) within each group; 0 if all are equal."""
    groups = [each.group for each in trajectories]
    values = normalised(totals(trajectories), groups, config.ddof, config.epsilon, roundings(trajectories))
    used = used_rows((values != 0.0).tolist(), groups, config.drop_zero_variance)
    return of_episodes(trajectories, values, used, centred=True)
