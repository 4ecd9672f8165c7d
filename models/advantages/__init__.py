"""Advantages: the weight of each token in the update, from rewards. One module per estimator, listed in ``ADVANTAGES``.

A module has one function ``advantages(trajectories, config) -> Advantages``. Baselines are per episode: a long episode
does not weigh more than a short one. An estimator from another package is a class derived from ``AdvantagePart``.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from coevo.configs.outside_part import Part, build
from coevo.configs.update.advantage_config import AdvantageConfig, OutsideAdvantageConfig
from coevo.models.advantages.trajectory import Advantages, Trajectory
from coevo.utilities.part_registry import Registry

ADVANTAGES = Registry[Callable[[Sequence[Trajectory], AdvantageConfig], Advantages]](
    "update.advantage.type",
    {
        "grpo": "coevo.models.advantages.grpo:advantages",
        "mean": "coevo.models.advantages.mean:advantages",
        "rloo": "coevo.models.advantages.rloo:advantages",
        "reinforce": "coevo.models.advantages.reinforce:advantages",
        "gigpo": "coevo.models.advantages.gigpo:advantages",
        "gae": "coevo.models.advantages.gae:advantages",
    },
)


class AdvantagePart(Part):
    """An estimator of your own for ``update.advantage``: what each episode, or each token, adds to the update.

    One object serves one iteration, and equal trajectories give equal advantages.

    Attributes:
        grouped: True if an episode is compared with the others of its task; groups of one are refused then.
        needs_critic: True if it reads ``Trajectory.values``; ``update.critic`` must be set then, else it must not.
    """

    setting: ClassVar[str] = OutsideAdvantageConfig.setting
    grouped: ClassVar[bool] = True
    needs_critic: ClassVar[bool] = False

    @abstractmethod
    def advantages(self, trajectories: Sequence[Trajectory]) -> Advantages:
        """Advantages of an iteration's episodes, in their order."""


def estimate(trajectories: Sequence[Trajectory], config: AdvantageConfig) -> Advantages:
    """Advantages of an iteration's episodes by the configured estimator, in their order.

    Raises:
        CoevoError: an episode lacks what the estimator needs.
    """
    if isinstance(config, OutsideAdvantageConfig):
        part: AdvantagePart = build(config)
        return part.advantages(trajectories)
    return ADVANTAGES.load(config.type)(trajectories, config)
