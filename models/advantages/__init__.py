"""Advantages: the weight of each token in the update, from rewards. One module per estimator, listed in ``ADVANTAGES``.

A module has one function ``advantages(trajectories, config) -> Advantages``. Baselines are per episode: a long episode
does not weigh more than a short one.
"""

from collections.abc import Callable, Sequence

from coevo.configs.update.advantage_config import AdvantageConfig
from coevo.models.advantages.trajectory import Advantages, Trajectory
from coevo.utilities.part_registry import Registry

ADVANTAGES = Registry[Callable[[Sequence[Trajectory], AdvantageConfig], Advantages]](
    "update.advantage.type",
    "coevo.advantages",
    {
        "grpo": "coevo.models.advantages.grpo:advantages",
        "mean": "coevo.models.advantages.mean:advantages",
        "rloo": "coevo.models.advantages.rloo:advantages",
        "reinforce": "coevo.models.advantages.reinforce:advantages",
        "gigpo": "coevo.models.advantages.gigpo:advantages",
        "gae": "coevo.models.advantages.gae:advantages",
    },
)


def estimate(trajectories: Sequence[Trajectory], config: AdvantageConfig) -> Advantages:
    """Advantages of an iteration's episodes by the configured estimator, in their order.

    Raises:
        CoevoError: an episode lacks what the estimator needs.
    """
    return ADVANTAGES.load(config.type)(trajectories, config)
