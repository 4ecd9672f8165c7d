"""Placement: on which devices the run generates and trains. The union is told apart by ``type``.

Without one, everything is where its own section says: ``rollout.engine`` generates on the GPUs it is given or on the
CPU, ``update.deepspeed`` trains on its ``device``, and nothing makes room for anything else.
"""

from typing import Annotated, Literal

from pydantic import Field

from configs.base import FEW, Config


class SharedPlacement(Config):
    """The same GPUs for both: the servers sleep while DeepSpeed trains."""

    type: Literal["shared"]
    """Who is where."""
    sleep: Literal[1, 2] = 2
    """What a sleeping server keeps in the memory of the machine: 1 its weights; 2 nothing, or the base of adapters."""


class SeparatePlacement(Config):
    """GPUs of its own for either: nothing waits for memory."""

    type: Literal["separate"]
    """Who is where."""
    update: tuple[Annotated[int, Field(ge=0, lt=FEW)], ...] = Field(min_length=1, max_length=FEW)
    """GPUs of the trainer, one each process; those of the servers are ``rollout.engine.devices``."""


class MachinesPlacement(Config):
    """Machines of their own: servers by ``rollout.engine.urls``, the trainer by ``update.deepspeed.hostfile``."""

    type: Literal["machines"]
    """Who is where."""
    gib: float | None = Field(default=None, gt=0, le=2**20)
    """Memory of each of the trainer's GPUs in GiB, where they are in other machines; null leaves it unknown."""


PlacementConfig = Annotated[SharedPlacement | SeparatePlacement | MachinesPlacement, Field(discriminator="type")]
