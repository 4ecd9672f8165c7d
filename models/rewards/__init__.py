"""Rewards: the reward of each turn of an episode. One module per kind, listed in ``REWARDS``.

A module has one function ``reward(episodes, penalties, config, baselines) -> Rewards``. A reward from another package
is a class derived from ``RewardPart``.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from coevo.configs.outside_part import Part, build
from coevo.configs.update.reward_config import OutsideRewardConfig, RewardConfig
from coevo.models.rewards.rewards import Rewards
from coevo.records.arrays import Floats
from coevo.records.episode import Episode
from coevo.utilities.part_registry import Registry

REWARDS = Registry[Callable[[Sequence[Episode], Sequence[Floats], RewardConfig, Mapping[str, float]], Rewards]](
    "update.reward.type",
    {
        "extrinsic": "coevo.models.rewards.extrinsic:reward",
        "discounted": "coevo.models.rewards.discounted:reward",
        "capability-evolution": "coevo.models.rewards.capability_evolution:reward",
        "progress-guided": "coevo.models.rewards.progress_guided:reward",
    },
)


class RewardPart(Part):
    """A reward of your own for ``update.reward``: the reward of each turn, from which advantages are computed.

    One object serves one iteration, and equal episodes give equal rewards.

    Attributes:
        whole: True if a turn's reward depends on the end of its episode; ``rollout.turns``, which cuts episodes, is
            refused then.
    """

    setting: ClassVar[str] = OutsideRewardConfig.setting
    whole: ClassVar[bool] = True

    @abstractmethod
    def reward(
        self, episodes: Sequence[Episode], penalties: Sequence[Floats], baselines: Mapping[str, float]
    ) -> Rewards:
        """Rewards of an iteration's episodes, in their order.

        Args:
            episodes: whole groups, in any order.
            penalties: subtracted from the reward of each turn, one array [turns] per episode.
            baselines: what the task's group once achieved, by task id; a task that is not in it starts at 0.
        """


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
    if isinstance(config, OutsideRewardConfig):
        part: RewardPart = build(config)
        return part.reward(episodes, penalties, baselines)
    return REWARDS.load(config.type)(episodes, penalties, config, baselines)
