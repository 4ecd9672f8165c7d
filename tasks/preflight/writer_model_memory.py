"""Memory of a frozen model that writes lessons, beside the run's own policy."""

from coevo.configs.bank.writer_model_config import FrozenWriterModelConfig
from coevo.configs.policy_config import PolicyConfig, PretrainedPolicyConfig
from coevo.configs.rollout.rollout_config import VllmEngineConfig, width_of
from coevo.configs.run_config import RunConfig
from coevo.models.capacity.devices import GIB, Machine
from coevo.models.capacity.footprint import PROCESS, MemoryUse, cache
from coevo.models.capacity.model_shape import SIZES, ModelShape, config_of, shape_of
from coevo.tasks.run.run_writer_model import writer_model_config

SERVING = 1.1
"""Memory of a server without keys and values, as a factor of its weights."""


def writer_model_on_host(config: RunConfig, machine: Machine) -> list[MemoryUse]:
    """Host memory of a frozen writer model; nothing for another one, or for a model that is not on this machine yet."""
    writer_model = writer_model_config(config)
    shape = frozen_shape(writer_model, config.policy) if isinstance(writer_model, FrozenWriterModelConfig) else None
    if shape is None or not isinstance(writer_model, FrozenWriterModelConfig):
        return []
    engine = writer_model.engine
    if not isinstance(engine, VllmEngineConfig):
        return [MemoryUse("the writer model: weights", shape.parameters * shape.bytes)]
    if engine.urls:
        return []
    return [MemoryUse("the writer model: servers", engine.replicas * serving(engine, shape, machine))]


def writer_model_on_gpu(config: RunConfig) -> list[MemoryUse]:
    """The least memory of a frozen writer model's server; nothing for a model that is not on this machine yet."""
    writer_model = writer_model_config(config)
    shape = frozen_shape(writer_model, config.policy) if isinstance(writer_model, FrozenWriterModelConfig) else None
    if (
        shape is None
        or not isinstance(writer_model, FrozenWriterModelConfig)
        or not isinstance(writer_model.engine, VllmEngineConfig)
    ):
        return []
    return least(writer_model.engine, shape, shape.positions, "the writer model")


def frozen_shape(writer_model: FrozenWriterModelConfig, policy: PolicyConfig) -> ModelShape | None:
    """Shape of a frozen writer model; None if it is neither on this machine nor the model of a policy with a shape."""
    given = policy.shape if isinstance(policy, PretrainedPolicyConfig) and policy.path == writer_model.path else None
    if given is None and config_of(writer_model.path) is None:
        return None
    return shape_of(
        PretrainedPolicyConfig(type="pretrained", path=writer_model.path, dtype=writer_model.dtype, shape=given), 0
    )


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
