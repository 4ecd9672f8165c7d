"""Return minus the group's mean (Dr. GRPO)."""

from collections.abc import Sequence

from coevo.configs.update.advantage_config import MeanConfig
from coevo.models.advantages.trajectory import (
    Advantages,
    Trajectory,
    centred,
    of_episodes,
    roundings,
    totals,
    used_rows,
)


def advantages(trajectories: Sequence[Trajectory], config: MeanConfig) -> Advantages:
    """R - mean within each group."""
    groups = [each.group for each in trajectories]
    values = centred(totals(trajectories), groups, roundings(trajectories))
    used = used_rows((values != 0.0).tolist(), groups, config.drop_zero_variance)
    return of_episodes(trajectories, values, used, centred=True)
