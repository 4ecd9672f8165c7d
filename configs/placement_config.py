"""Placement: the devices on which the run generates and trains, selected by ``type``.

Without a placement, each section decides by itself: ``rollout.engine`` generates on its GPUs or on the CPU,
``update.deepspeed`` trains on its ``device``, and neither frees memory for the other.
"""

from typing import Annotated, Literal

from pydantic import Field

from coevo.configs.base import MAX_PROCESSES, Config


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


class MachinesPlacement(Config):
    """Separate machines: servers by ``rollout.engine.urls``, the trainer by ``update.deepspeed.hostfile``."""

    type: Literal["machines"]
    """Name of the placement."""
    gib: float | None = Field(default=None, gt=0, le=2**20)
    """Memory of each of the trainer's GPUs in GiB if they are in other machines; null means unknown."""


PlacementConfig = Annotated[SharedPlacement | SeparatePlacement | MachinesPlacement, Field(discriminator="type")]
