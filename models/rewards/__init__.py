"""Rewards: what an episode's turns are worth. One module a kind, named like its configuration's ``type``.

A module has one function ``reward(episodes, penalties, config, baselines) -> Rewards``.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module

import numpy as np

from configs.reward import RewardConfig
from models.rewards.rewards import Rewards
from records.episode import Episode


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
    part = import_module(f"models.rewards.{config.type.replace('-', '_')}")
    penalties = [np.array([penalty * (not turn.valid) for turn in episode.turns]) for episode in episodes]
    rewards: Rewards = part.reward(episodes, penalties, config, baselines)
    return rewards
