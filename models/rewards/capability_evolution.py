"""Capability-evolution reward: progress beyond the task's baseline (RetroAgent Eq. 5 and 6)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from configs.errors import CoevoError
from configs.reward import CapabilityEvolutionConfig
from models.rewards.evolution import composite, evolve
from models.rewards.rewards import Floats, Rewards
from records.episode import Episode


def reward(
    episodes: Sequence[Episode],
    penalties: Sequence[Floats],
    config: CapabilityEvolutionConfig,
    baselines: Mapping[str, float],
) -> Rewards:
    """The potential is the fraction of the task that the environment says was completed.

    Raises:
        CoevoError: the environment knows no progress.
    """
    gains = evolve(episodes, [_progress(episode) for episode in episodes], baselines)
    metrics = {
        "reward/intrinsic": float(gains.intrinsic.mean()),
        "reward/intrinsic_share": float((gains.intrinsic > 0).mean()),
        "reward/baseline": sum(gains.baselines.values()) / len(gains.baselines),
    }
    return replace(composite(episodes, penalties, config.gamma, gains), metrics=metrics)


def _progress(episode: Episode) -> float:
    if episode.progress is None:
        raise CoevoError(
            f"{episode.task.env} reports no progress, which update.reward.type=capability-evolution needs: "
            "set update.reward.type=progress-guided, or let the environment's steps report it"
        )
    return episode.progress
