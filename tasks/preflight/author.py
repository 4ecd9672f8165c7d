"""Memory of a frozen model that writes lessons, beside the run's own policy."""

from coevo.configs.bank.author import FrozenAuthorConfig
from coevo.configs.policy import PretrainedPolicyConfig
from coevo.configs.rollout.engine import VllmEngineConfig
from coevo.configs.run import RunConfig
from coevo.models.capacity.devices import GIB, Machine
from coevo.models.capacity.footprint import PROCESS, Item
from coevo.models.capacity.shape import SIZES, Shape, config_of, shape_of
from coevo.tasks.run.author import author_config

SERVING = 1.1
"""Memory of a server without keys and values, as a factor of its weights."""


def author_on_host(config: RunConfig, machine: Machine) -> list[Item]:
    """Host memory of a frozen author; nothing for another one, or for a model that is not on this machine yet."""
    author = author_config(config)
    shape = frozen_shape(author) if isinstance(author, FrozenAuthorConfig) else None
    if shape is None or not isinstance(author, FrozenAuthorConfig):
        return []
    engine = author.engine
    if not isinstance(engine, VllmEngineConfig):
        return [Item("the author: weights", shape.parameters * shape.bytes)]
    if engine.urls:
        return []
    return [Item("the author: servers", engine.replicas * serving(engine, shape, machine))]


def frozen_shape(author: FrozenAuthorConfig) -> Shape | None:
    """Shape of a frozen author; None if its model is not on this machine."""
    if config_of(author.path) is None:
        return None
    return shape_of(PretrainedPolicyConfig(type="pretrained", path=author.path, dtype=author.dtype), 0)


def serving(engine: VllmEngineConfig, shape: Shape, machine: Machine) -> int:
    """Bytes of host memory of a server: all of it on a CPU, else its process alone."""
    if machine.gpus:
        return PROCESS
    return int(SERVING * SIZES[engine.dtype] * shape.parameters) + engine.cpu_memory * GIB + PROCESS
