"""Placement of servers and trainer on GPUs: which GPUs each sees, and when servers free theirs."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from coevo.configs.placement_config import RayPlacement, SeparatePlacement, SharedPlacement
from coevo.configs.rollout.rollout_config import VllmEngineConfig, gpus_of
from coevo.configs.run_config import RunConfig
from coevo.configs.update.update_config import DeepSpeedConfig
from coevo.models.trainer.trainer_launch import Launched, TrainerRanks
from coevo.utilities.errors import CoevoError


@runtime_checkable
class Sleeper(Protocol):
    """An engine that can leave its GPUs to others until its next ``load``, which wakes it."""

    def sleep(self, level: int) -> None:
        """Keep the weights in the memory of the machine (1), or nothing (2); does nothing where it sleeps already."""
        ...


def make_room(config: RunConfig, engine: object) -> None:
    """Before the trainer computes: send the servers to sleep where they share their GPUs with it.

    Raises:
        CoevoError: the engine cannot sleep.
    """
    if not isinstance(config.placement, SharedPlacement):
        return
    if not isinstance(engine, Sleeper):
        raise CoevoError(
            f"placement.type=shared needs servers that can sleep, and rollout.engine.type={config.rollout.engine.type} "
            "cannot: set placement.type=separate, or leave placement out"
        )
    engine.sleep(config.placement.sleep)


def trainer_launch(config: RunConfig) -> Callable[[DeepSpeedConfig, Path], TrainerRanks]:
    """Start of the trainer's processes: on this machine, or in the pool of a cluster."""
    placement = config.placement
    if not isinstance(placement, RayPlacement) or placement.pools.trainer is None:
        return partial(Launched, variables=trainer_environment(config))
    from coevo.models.trainer.cluster_ranks import ClusterRanks

    return partial(ClusterRanks, placement=placement)


def trainer_environment(config: RunConfig) -> dict[str, str]:
    """Additional environment variables of the trainer's processes: the visible GPUs, the first for rank 0."""
    gpus: Iterable[object] = ()
    if isinstance(config.placement, SeparatePlacement):
        gpus = config.placement.update
    elif isinstance(config.placement, SharedPlacement) and isinstance(config.rollout.engine, VllmEngineConfig):
        gpus = gpus_of(config.rollout.engine)
    named = ",".join(map(str, gpus))
    return {"CUDA_VISIBLE_DEVICES": named} if named else {}
