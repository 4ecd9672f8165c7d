"""Rewards: the reward of each turn of an episode. One module per kind, listed in ``REWARDS``.

A module has one function ``reward(episodes, penalties, config, baselines) -> Rewards``.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from coevo.configs.update.reward_config import RewardConfig
from coevo.models.rewards.rewards import Rewards
from coevo.records.arrays import Floats
from coevo.records.episode import Episode
from coevo.utilities.part_registry import Registry

REWARDS = Registry[Callable[[Sequence[Episode], Sequence[Floats], RewardConfig, Mapping[str, float]], Rewards]](
    "update.reward.type",
    "coevo.rewards",
    {
        "extrinsic": "coevo.models.rewards.extrinsic:reward",
        "discounted": "coevo.models.rewards.discounted:reward",
        "capability-evolution": "coevo.models.rewards.capability_evolution:reward",
        "progress-guided": "coevo.models.rewards.progress_guided:reward",
    },
)


def reward(
    episodes: Sequence[Episode], penalty: float, config: RewardConfig, baselines: Mapping[str, float]
) -> Rewards:
    """Rewards of an iteration's episodes by the configured kind.

    Args:
        episodes: whole groups, in any order.
        penalty: subtracted from the reward of each turn whose action was not understood.
        config: which kind, and its settings.
        baselines: what the task's group once achieved, by task id; a task that is not in it starts at 0.

    Raises:
        CoevoError: an episode lacks what the kind needs.
    """
    penalties = [np.array([penalty * (not turn.valid) for turn in episode.turns]) for episode in episodes]
    return REWARDS.load(config.type)(episodes, penalties, config, baselines)
