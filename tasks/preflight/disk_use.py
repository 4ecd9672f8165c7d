"""Disk that a run fills, and a notice where it has too little."""

from collections.abc import Iterator

from coevo.configs.run_config import RunConfig
from coevo.models.capacity.devices import GIB, Machine
from coevo.models.capacity.footprint import peak
from coevo.models.capacity.model_shape import ModelShape
from coevo.models.capacity.storage import stored
from coevo.tasks.preflight.memory import Need


def disk_of(config: RunConfig, machine: Machine, shape: ModelShape) -> Need:
    """Disk of all revisions of a run, episodes and bank aside.

    Args:
        config: the run.
        machine: machine of the run, with the free space of its workspace.
        shape: shape of its policy.
    """
    revisions = config.iterations // config.lineage.every if config.update is not None else 0
    critic = config.update is not None and config.update.critic is not None
    items = stored(shape, 1 + revisions, config.lineage.optimizer_every, critic)
    return Need("the disk", peak(items), machine.disk, tuple(items))


def full(config: RunConfig, disk: Need) -> Iterator[str]:
    """Notice of a disk that fills during the run."""
    if disk.fits or disk.there is None:
        return
    yield (
        f"{config.iterations} iterations keep {disk.bytes / GIB:.0f} GiB of policies, and {disk.there / GIB:.0f} are "
        "free: set lineage.every higher or policy.lora, or run `coevo gc` on the way"
    )
