"""Reward for exceeding the earlier success of the task's group (RetroAgent Eq. 5 and 6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from coevo.models.advantages.trajectory import TOLERANCE
from coevo.models.rewards import Rewards, discounting, spread
from coevo.records.arrays import Floats
from coevo.records.episode import Episode


@dataclass(frozen=True, slots=True)
class Gains:
    """Gains of episodes over their baselines.

    Attributes:
        intrinsic: max(0, potential - baseline) of each episode, [episodes]; rounding is no gain.
        baselines: by task id, raised to the mean success of this iteration's group if that is higher.
    """

    intrinsic: Floats
    baselines: dict[str, float]


def evolve(episodes: Sequence[Episode], potentials: Sequence[float], baselines: Mapping[str, float]) -> Gains:
    """Gains over the baselines before these episodes, and the baselines after them."""
    before = np.array([baselines.get(episode.task.id, 0.0) for episode in episodes])
    successes: dict[str, list[bool]] = {}
    for episode in episodes:
        successes.setdefault(episode.task.id, []).append(episode.success)
    achieved = {task: sum(group) / len(group) for task, group in successes.items()}
    after = {task: max(baselines.get(task, 0.0), mean) for task, mean in achieved.items()}
    gained = np.array(potentials, dtype=np.float64) - before
    return Gains(np.where(gained > TOLERANCE, gained, 0.0), {**baselines, **after})


def composite(episodes: Sequence[Episode], penalties: Sequence[Floats], gamma: float, gains: Gains) -> Rewards:
    """Extrinsic plus intrinsic reward in equal shares on the turns, minus their penalties, discounted."""
    turns = [
        spread(episode.reward + intrinsic, len(episode.turns)) - cost
        for episode, intrinsic, cost in zip(episodes, gains.intrinsic.tolist(), penalties, strict=True)
    ]
    return Rewards(discounting(episodes, turns, gamma), turns, gains.baselines)
