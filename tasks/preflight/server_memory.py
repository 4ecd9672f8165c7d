"""Memory of a vLLM server: its share of a GPU, the least that it needs there, and that of the host."""

from coevo.configs.rollout.engine_config import VllmEngineConfig, width_of
from coevo.models.capacity.devices import GIB, Machine
from coevo.models.capacity.footprint import PROCESS, MemoryUse, cache
from coevo.models.capacity.model_shape import SIZES, ModelShape

SERVING = 1.1
"""Memory of a server without keys and values, as a factor of its weights."""


def share(engine: VllmEngineConfig, memory: int) -> int:
    """Bytes that a server takes of a GPU."""
    return int(memory * engine.gpu_memory_utilization)


def least(engine: VllmEngineConfig, shape: ModelShape, longest: int, whose: str = "server") -> list[MemoryUse]:
    """The least memory of a server: weights, and keys and values of one sequence of maximum length.

    Args:
        engine: settings of the server.
        shape: shape of its model.
        longest: tokens of the longest prompt and answer.
        whose: name of the server.
    """
    split = width_of(engine)
    number = SIZES[engine.dtype]
    tokens = engine.max_model_len or min(shape.positions, longest)
    return [
        MemoryUse(f"{whose}: weights", int(SERVING * number * shape.parameters) // split),
        MemoryUse(f"{whose}: one sequence", cache(shape) * number // shape.bytes * tokens // split),
    ]


def serving(engine: VllmEngineConfig, shape: ModelShape, machine: Machine) -> int:
    """Bytes of host memory of a server: all of it on a CPU, else its process alone."""
    if machine.gpus:
        return PROCESS
    return int(SERVING * SIZES[engine.dtype] * shape.parameters) + engine.cpu_memory * GIB + PROCESS
