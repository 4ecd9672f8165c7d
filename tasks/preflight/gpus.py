"""GPUs of this machine: those that servers and trainer use, and an error where these do not exist."""

from coevo.configs.bank.writer_model_config import FrozenWriterModelConfig
from coevo.configs.placement_config import SeparatePlacement, SharedPlacement, engine_pool, trainer_pool
from coevo.configs.rollout.rollout_config import EngineConfig, VllmEngineConfig, gpus_of, indices_of
from coevo.configs.run_config import RunConfig
from coevo.models.capacity.devices import Machine
from coevo.tasks.run.run_writer_model import writer_model_config
from coevo.utilities.errors import CoevoError


class MissingGpusError(CoevoError):
    """The machine has fewer GPUs than the configuration uses."""


def started(engine: EngineConfig) -> VllmEngineConfig | None:
    """Settings of the servers that a run starts here; None without any."""
    return engine if isinstance(engine, VllmEngineConfig) and not engine.urls else None


def servers_here(config: RunConfig) -> VllmEngineConfig | None:
    """Settings of the servers that a run starts here for its policy; None without any, or on a cluster."""
    return None if engine_pool(config.placement) else started(config.rollout.engine)


def writer_model_servers(config: RunConfig) -> VllmEngineConfig | None:
    """Settings of the servers that a run starts here for a frozen writer model; None without any."""
    writer_model = writer_model_config(config)
    return started(writer_model.engine) if isinstance(writer_model, FrozenWriterModelConfig) else None


def server_gpus(engine: VllmEngineConfig | None, machine: Machine) -> set[int]:
    """GPUs of servers: the first if the settings name none, and any if they name them otherwise than by number."""
    if engine is None or not machine.gpus:
        return set()
    return (indices_of(engine) or set(range(len(machine.gpus)))) if engine.devices else {0}


def trainer_gpus(config: RunConfig) -> set[int]:
    """GPUs of the update; none if it trains on the CPU or on other machines."""
    update, placement, engine = config.update, config.placement, config.rollout.engine
    if update is None or update.deepspeed.device != "cuda" or trainer_pool(placement) is not None:
        return set()
    if isinstance(placement, SeparatePlacement):
        return set(placement.update)
    count = update.deepspeed.processes
    if isinstance(placement, SharedPlacement) and isinstance(engine, VllmEngineConfig):
        named = [int(gpu) for gpu in gpus_of(engine)[:count] if gpu.isdecimal()]
        return set(named) if len(named) == count else set(range(count))
    return set(range(count))


def check_gpus(config: RunConfig, machine: Machine) -> None:
    """Check that the GPUs of a run exist. Servers on a machine without any compute on its CPU.

    Raises:
        MissingGpusError: one does not.
    """
    there, placement, trained = len(machine.gpus), config.placement, trainer_gpus(config)
    first = max(trained) + 1 if isinstance(placement, SeparatePlacement) and trained else len(trained)
    if first > there:
        many = f"{first} GPU{'s' if first > 1 else ''}"
        raise MissingGpusError(f"update.deepspeed.device=cuda takes {many}, and there are {there or 'none'} here")
    servers = (("rollout", servers_here(config)), ("bank.writer.model", writer_model_servers(config)))
    for section, engine in servers:
        last = -1 if engine is None else max(indices_of(engine), default=-1)
        if last >= there > 0:
            raise MissingGpusError(
                f"{section}.engine.devices names GPU {last}, and the last one here is GPU {there - 1}"
            )
