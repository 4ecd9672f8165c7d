"""Placement of servers and trainer on GPUs: which GPUs each sees, and when servers free theirs."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from coevo.configs.placement_config import RayPlacement, RayPool, SeparatePlacement, SharedPlacement
from coevo.configs.rollout.rollout_config import VllmEngineConfig, gpus_of
from coevo.configs.run_config import RunConfig
from coevo.configs.update.update_config import DeepSpeedConfig
from coevo.lineage.lineage import Lineage
from coevo.lineage.revision.manifest import Manifest
from coevo.models.trainer.trainer_client import StartingPoint, TrainerLostError
from coevo.models.trainer.trainer_launch import TrainerRanks
from coevo.tasks.session import Session
from coevo.utilities.cluster.joined_cluster import joined
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import HERE, Launcher, Resources

RESTARTS = 3
"""Ends of a trainer's processes on a cluster during one step that are made good."""
T = TypeVar("T")


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
    pool = placement.pools.trainer if isinstance(placement, RayPlacement) else None
    if pool is None:
        return partial(TrainerRanks, variables=trainer_environment(config))
    return partial(TrainerRanks, launcher=launcher_of(config, pool), resources=resources_of(pool))


def launcher_of(config: RunConfig, pool: RayPool | None) -> Launcher:
    """Source of places: the cluster of the run's placement for a pool that is set, else this machine."""
    placement = config.placement
    if pool is None or not isinstance(placement, RayPlacement):
        return HERE
    from coevo.utilities.cluster.node_places import ClusterLauncher

    return ClusterLauncher(partial(joined, placement.address, placement.startup_timeout), placement.startup_timeout)


def resources_of(pool: RayPool) -> Resources:
    """Resources that each process of a pool takes."""
    return Resources(pool.cpus, pool.gpus, pool.resource)


def starting_point(lineage: Lineage, head: Manifest | None, start: Path, references: Path) -> StartingPoint:
    """Policy, reference and optimizer of a trainer at a revision.

    Args:
        lineage: of the run.
        head: the revision; None before the first one.
        start: policy at the revision.
        references: folder for the policy of revision 0, the reference.
    """
    if head is None:
        return StartingPoint(start, start)
    optimizer = lineage.artifacts.path("optimizer") if "optimizer" in head.artifacts else None
    if not references.exists():
        lineage.artifacts.materialise(0, "policy", references)
    return StartingPoint(start, references, optimizer)


def insisted(session: Session, compute: Callable[[], T]) -> T:
    """Result of the trainer. One whose process dies on a cluster starts again at the last revision, and repeats it.

    A trainer that has made updates since that revision (``lineage.every``) has lost them, and is not started again.

    Raises:
        TrainerError: it failed, died on this machine, has lost updates, or died once more often than ``RESTARTS``.
    """
    trainer, stores, restarts = session.parts.trainer, session.stores, 0
    assert trainer is not None
    head: Manifest | None = None
    while True:
        try:
            if head is not None:
                policy = stores.lineage.artifacts.path("policy")
                trainer.restart(starting_point(stores.lineage, head, policy, stores.paths.reference))
            return compute()
        except TrainerLostError as error:
            head = stores.lineage.history.head()
            assert head is not None  # the warm start needs no trainer
            if restarts == RESTARTS or head.iteration != session.iteration:
                raise
            restarts += 1
            stores.reporter.warn(f"{error}; its step is repeated from revision {head.revision}")


def trainer_environment(config: RunConfig) -> dict[str, str]:
    """Additional environment variables of the trainer's processes: the visible GPUs, the first for rank 0."""
    gpus: Iterable[object] = ()
    if isinstance(config.placement, SeparatePlacement):
        gpus = config.placement.update
    elif isinstance(config.placement, SharedPlacement) and isinstance(config.rollout.engine, VllmEngineConfig):
        gpus = gpus_of(config.rollout.engine)
    named = ",".join(map(str, gpus))
    return {"CUDA_VISIBLE_DEVICES": named} if named else {}
