"""Rewards: the reward of each turn of an episode. One module per kind, listed in ``REWARDS``.

A module has one function ``reward(episodes, penalties, config, baselines) -> Rewards``. A reward from another package
is a class derived from ``RewardPart``.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from coevo.configs.outside_part import Part, build
from coevo.configs.update.reward_config import OutsideRewardConfig, RewardConfig
from coevo.records.arrays import Floats
from coevo.records.episode import Episode
from coevo.utilities.part_registry import Registry


@dataclass(frozen=True, slots=True)
class Rewards:
    """Rewards of some episodes.

    Attributes:
        shaping: reward of each episode in addition to the environment's own, [episodes].
        turns: reward of each turn, one array [turns] per episode.
        baselines: earlier success of the task's group, by task id; must be stored with the revision.
        metrics: figures of this kind of reward only, as ``policy/reward/<name>``.
    """

    shaping: Floats
    turns: list[Floats]
    baselines: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)


def unrewarded(outcomes: Sequence[tuple[bool, float]], bounds: tuple[float, float]) -> int:
    """Number of successes if none of them earns what a failure does not; 0 if success is worth something.

    Rewards below 0, as for every step, are worth something where failures lose more, or where more could be lost.

    Args:
        outcomes: success and return of each episode.
        bounds: lowest and highest return that the environment declares.
    """
    returns: dict[bool, list[float]] = {True: [], False: []}
    for success, earned in outcomes:
        returns[success].append(earned)
    won, lost = returns[True], returns[False]
    if not won:
        return 0
    if lost:
        worthless = max(won) <= min(0.0, max(lost)) or min(won + lost) == max(won + lost)
    else:
        worthless = max(won) <= bounds[0] or (not any(won) and bounds[1] > 0)
    return len(won) * worthless


def extrinsic_turns(episode: Episode) -> Floats:
    """Environment's reward of each turn, [turns]."""
    return np.array([turn.reward for turn in episode.turns], dtype=np.float64)


def spread(total: float, turns: int) -> Floats:
    """Equal shares of a total, [turns]."""
    return np.full(turns, total / turns)


def discounted_sum(turns: Floats, gamma: float) -> float:
    """Sum over t of gamma^t r_t (JERP Eq. 5)."""
    return float(turns @ gamma ** np.arange(len(turns)))


def discounting(episodes: Sequence[Episode], turns: Sequence[Floats], gamma: float) -> Floats:
    """Difference between each episode's discounted sum and its plain extrinsic sum, [episodes]."""
    pairs = zip(episodes, turns, strict=True)
    return np.array([discounted_sum(each, gamma) - episode.reward for episode, each in pairs], dtype=np.float64)


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
