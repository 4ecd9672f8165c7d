"""The return itself (REINFORCE); every episode enters the update, since none is compared with its group."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from configs.advantage import ReinforceConfig
from models.advantages.trajectory import Advantages, Trajectory, of_episodes, totals


def advantages(trajectories: Sequence[Trajectory], config: ReinforceConfig) -> Advantages:
    """R, less the mean over all episodes where the baseline is the batch."""
    returns = totals(trajectories)
    baseline = float(returns.mean()) if config.baseline == "batch" and len(returns) else 0.0
    made = of_episodes(trajectories, returns - baseline, np.ones(len(returns), dtype=np.bool_), centred=False)
    return replace(made, metrics={"advantage/baseline": baseline})
