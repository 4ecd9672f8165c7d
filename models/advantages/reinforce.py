"""The return itself (REINFORCE); every episode enters the update, since none is compared with its group."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from coevo.configs.update.advantage_config import ReinforceConfig
from coevo.models.advantages.trajectory import Advantages, Trajectory, centred, of_episodes, roundings, totals


def advantages(trajectories: Sequence[Trajectory], config: ReinforceConfig) -> Advantages:
    """R, minus the mean over all episodes if the baseline is the batch; 0 if they are equal."""
    returns, compared = totals(trajectories), config.baseline == "batch"
    baseline = float(returns.mean()) if compared and len(returns) else 0.0
    values = centred(returns, [config.baseline] * len(returns), roundings(trajectories)) if compared else returns
    made = of_episodes(trajectories, values, np.ones(len(returns), dtype=np.bool_), centred=False)
    return replace(made, metrics={"policy/advantage/baseline": baseline})
