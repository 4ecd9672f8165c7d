"""Progress-guided reward: success beyond the task's baseline (RetroAgent Table 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coevo.configs.update.reward_config import ProgressGuidedConfig
from coevo.models.rewards import Rewards
from coevo.models.rewards.evolution import composite, evolve
from coevo.records.arrays import Floats
from coevo.records.episode import Episode


def reward(
    episodes: Sequence[Episode],
    penalties: Sequence[Floats],
    config: ProgressGuidedConfig,
    baselines: Mapping[str, float],
) -> Rewards:
    """Rewards whose potential is success itself, 0 or 1."""
    gains = evolve(episodes, [float(episode.success) for episode in episodes], baselines)
    metrics = {"policy/reward/guided": float(gains.intrinsic.mean())}
    return replace(composite(episodes, penalties, config.gamma, gains), metrics=metrics)
