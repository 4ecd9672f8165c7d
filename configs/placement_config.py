"""Placement: the devices on which the run generates and trains, selected by ``type``.

Without a placement, each section decides by itself: ``rollout.engine`` generates on its GPUs or on the CPU,
``update.deepspeed`` trains on its ``device``, and neither frees memory for the other.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from coevo.configs.base import MAX_PROCESSES, MAX_SECONDS, Config
from coevo.configs.trust_settings import Trusted


class SharedPlacement(Config):
    """Shared GPUs: the servers sleep while DeepSpeed trains."""

    type: Literal["shared"]
    """Name of the placement."""
    sleep: Literal[1, 2] = 2
    """Contents of CPU memory while a server sleeps: 1: its weights; 2: nothing, or the base model of adapters."""


class SeparatePlacement(Config):
    """Separate GPUs for servers and trainer: nothing waits for memory."""

    type: Literal["separate"]
    """Name of the placement."""
    update: tuple[Annotated[int, Field(ge=0, lt=MAX_PROCESSES)], ...] = Field(min_length=1, max_length=MAX_PROCESSES)
    """GPUs of the trainer, one per process; the GPUs of the servers are ``rollout.engine.devices``."""


class RayPool(Config):
    """Resources that each process of a pool takes of its node."""

    cpus: float = Field(default=1.0, ge=0, le=1024)
    """CPU cores."""
    gpus: float = Field(default=0.0, ge=0, le=64)
    """GPUs; process k of a trainer needs a whole one."""
    resource: str = Field(default="", pattern=r"^[\w.-]{0,64}$")
    """Custom resource that its nodes declare (``ray start --resources``), and 0.001 of which it takes; empty: any."""


class EnvironmentPool(RayPool):
    """Hosts of simulators, each with ``env.simulator.workers`` processes, on all nodes with room for one."""

    per_node: int = Field(default=1, ge=1, le=MAX_PROCESSES)
    """Most hosts on a node. The results do not depend on it."""


class TrainerPool(RayPool):
    """Processes of the update, ``update.deepspeed.processes`` in all."""

    gib: float | None = Field(default=None, gt=0, le=2**20)
    """Memory of each of their GPUs in GiB, for the dry run; null means unknown."""


class EnginePool(RayPool):
    """Servers of vLLM, ``rollout.engine.replicas`` in all; one with several GPUs splits the model over them."""

    gpus: float = Field(default=0.0, ge=0, le=64, multiple_of=1)
    """GPUs of a server, whole ones."""


class RayPools(Config):
    """Parts that run on the cluster; a pool that is not set stays in the run's own machine."""

    environments: EnvironmentPool | None = None
    """Simulators of a stateful environment."""
    trainer: TrainerPool | None = None
    """Processes of the update."""
    engines: EnginePool | None = Field(default=None, exclude_if=lambda engines: engines is None)
    """Servers of vLLM."""

    @model_validator(mode="after")
    def _used(self) -> Self:
        if self.environments is None and self.trainer is None and self.engines is None:
            raise ValueError("none is set: set placement.pools.environments={} or that of trainer or engines")
        return self


class RayPlacement(Config):
    """A Ray cluster, for the pools that are set."""

    type: Literal["ray"]
    """Name of the placement."""
    address: Annotated[str, Trusted("runs programs on the machines of a cluster")] = Field(
        default="auto", pattern=r"^(auto|[\w.-]+:\d{1,5})$"
    )
    """``HOST:PORT`` of the cluster; ``auto``: of ``RAY_ADDRESS``, or of this workspace's ``coevo cluster up``."""
    startup_timeout: float = Field(default=30.0, gt=0, le=MAX_SECONDS)
    """Seconds in which the cluster must answer, and a process of a pool be placed."""
    pools: RayPools
    """Parts that run there."""


PlacementConfig = Annotated[SharedPlacement | SeparatePlacement | RayPlacement, Field(discriminator="type")]


def engine_pool(placement: SharedPlacement | SeparatePlacement | RayPlacement | None) -> EnginePool | None:
    """Pool of the vLLM servers on a cluster; None for servers of this machine."""
    return placement.pools.engines if isinstance(placement, RayPlacement) else None


def trainer_pool(placement: SharedPlacement | SeparatePlacement | RayPlacement | None) -> TrainerPool | None:
    """Pool of the update's processes on a cluster; None for an update on this machine."""
    return placement.pools.trainer if isinstance(placement, RayPlacement) else None
