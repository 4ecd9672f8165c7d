"""The discounted return (JERP Eq. 5; RetroAgent Table 5, first step)."""

from collections.abc import Mapping, Sequence

from coevo.configs.update.reward_config import DiscountedConfig
from coevo.models.rewards import Rewards, discounting, extrinsic_turns, spread
from coevo.records.arrays import Floats
from coevo.records.episode import Episode


def reward(
    episodes: Sequence[Episode], penalties: Sequence[Floats], config: DiscountedConfig, baselines: Mapping[str, float]
) -> Rewards:
    """Discounted return of the environment's rewards, per turn or in equal shares of the episode's reward."""
    given = [_uniform(episode) if config.spread == "uniform" else extrinsic_turns(episode) for episode in episodes]
    turns = [each - cost for each, cost in zip(given, penalties, strict=True)]
    shaping = discounting(episodes, turns, config.gamma)
    return Rewards(shaping, turns, baselines, {"policy/reward/discount": float(-shaping.mean())})


def _uniform(episode: Episode) -> Floats:
    return spread(episode.reward, len(episode.turns))
