"""Disk of a run, by formula: the policy and the optimizer of each revision, episodes and the bank aside."""

from coevo.configs.sections import LARGE_OPTIMIZER
from coevo.models.capacity.footprint import MemoryUse
from coevo.models.capacity.model_shape import ModelShape

MOMENTS, MASTER = 8, 4
"""Bytes per trained parameter of a stored optimizer: two moments, and of half precision a copy, in float32."""


def weights(shape: ModelShape) -> int:
    """Bytes of a revision's weights; of adapters, these alone, in float32."""
    return 4 * shape.trainable if shape.rank else shape.bytes * shape.parameters


def optimizer(shape: ModelShape, critic: bool) -> int:
    """Bytes of a revision's optimizer, and with a critic those of its weights in float32 and of its own optimizer."""
    half = shape.bytes < MASTER and not shape.rank
    state = (MOMENTS + MASTER * half) * shape.trainable
    return 2 * state + MASTER * shape.trainable if critic else state


def stored(shape: ModelShape, revisions: int, every: int, critic: bool) -> list[MemoryUse]:
    """Items that so many revisions keep; a large optimizer is in every ``every``-th of them, and in the newest."""
    states = optimizer(shape, critic)
    kept = revisions if states < LARGE_OPTIMIZER else min(revisions, -(-revisions // every) + 1)
    return [MemoryUse("weights", revisions * weights(shape)), MemoryUse("optimizer", kept * states)]


def saving(shape: ModelShape) -> int:
    """Bytes of host memory that a save takes above what is held: it streams one tensor after another."""
    return shape.trainable if shape.rank else max(shape.parameters, 4 * shape.vocabulary * shape.hidden)
