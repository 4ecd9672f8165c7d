"""Advantages: what rewards say about tokens. One module an estimator, named like its configuration's ``type``.

A module has one function ``advantages(trajectories, config) -> Advantages``. Baselines are per episode: a long episode
does not weigh more than a short one.
"""

from collections.abc import Sequence
from importlib import import_module

from configs.advantage import AdvantageConfig
from models.advantages.trajectory import Advantages, Trajectory


def estimate(trajectories: Sequence[Trajectory], config: AdvantageConfig) -> Advantages:
    """Advantages of an iteration's episodes by the configured estimator, in their order.

    Raises:
        CoevoError: an episode lacks what the estimator needs.
    """
    part = import_module(f"models.advantages.{config.type.replace('-', '_')}")
    advantages: Advantages = part.advantages(trajectories, config)
    return advantages
