"""Capability-evolution reward: progress beyond the task's baseline (RetroAgent Eq. 5 and 6)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coevo.configs.update.reward_config import CapabilityEvolutionConfig
from coevo.models.rewards import Rewards
from coevo.models.rewards.evolution import composite, evolve
from coevo.records.arrays import Floats
from coevo.records.episode import Episode
from coevo.utilities.errors import CoevoError


def reward(
    episodes: Sequence[Episode],
    penalties: Sequence[Floats],
    config: CapabilityEvolutionConfig,
    baselines: Mapping[str, float],
) -> Rewards:
    """Rewards whose potential is the fraction of the task completed, as the environment reports it.

    Raises:
        CoevoError: the environment reports no progress.
    """
    gains = evolve(episodes, [_progress(episode) for episode in episodes], baselines)
    metrics = {
        "policy/reward/intrinsic": float(gains.intrinsic.mean()),
        "policy/reward/intrinsic_share": float((gains.intrinsic > 0).mean()),
        "policy/reward/baseline": sum(gains.baselines.values()) / len(gains.baselines),
    }
    return replace(composite(episodes, penalties, config.gamma, gains), metrics=metrics)


def _progress(episode: Episode) -> float:
    if episode.progress is None:
        raise CoevoError(
            f"{episode.task.env} reports no progress, which update.reward.type=capability-evolution needs: "
            "set update.reward.type=progress-guided, or let the environment's steps report it"
        )
    return episode.progress
