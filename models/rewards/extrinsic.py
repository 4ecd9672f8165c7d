"""The environment's own rewards."""

from collections.abc import Mapping, Sequence

import numpy as np

from coevo.configs.update.reward_config import ExtrinsicConfig
from coevo.models.rewards import Rewards, extrinsic_turns
from coevo.records.arrays import Floats
from coevo.records.episode import Episode


def reward(
    episodes: Sequence[Episode], penalties: Sequence[Floats], config: ExtrinsicConfig, baselines: Mapping[str, float]
) -> Rewards:
    """Rewards of the environment per turn, minus their penalties; the return is their sum."""
    turns = [extrinsic_turns(episode) - cost for episode, cost in zip(episodes, penalties, strict=True)]
    return Rewards(np.array([-_total(cost) for cost in penalties], dtype=np.float64), turns, baselines)


def _total(cost: Floats) -> float:
    """Sum with one rounding for equal costs, however many: episodes that differ in nothing else stay equal."""
    return float(cost.max(initial=0.0)) * int(np.count_nonzero(cost))
