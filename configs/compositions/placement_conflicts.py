"""Conflicts of the placement with the devices that engine and update name."""

from collections.abc import Iterator

from coevo.configs.placement_config import MachinesPlacement, SeparatePlacement, SharedPlacement
from coevo.configs.rollout.engine_config import VllmEngineConfig, gpus_of
from coevo.configs.sections import RunSections


def flaws(config: RunSections) -> Iterator[str]:
    """Conflicts of the placement with the sections of engine and update."""
    placement = config.placement
    if isinstance(placement, SharedPlacement):
        yield from _shared(config)
    elif isinstance(placement, SeparatePlacement):
        yield from _separate(config, placement)
    elif isinstance(placement, MachinesPlacement):
        yield from _machines(config)


def _shared(config: RunSections) -> Iterator[str]:
    yield from _servers(config, "shared")
    yield from _on_gpus(config, "shared")
    engine, update = config.rollout.engine, config.update
    if not isinstance(engine, VllmEngineConfig) or update is None or not engine.devices:
        return
    if update.deepspeed.processes > len(gpus_of(engine)):
        yield (
            f"placement.type=shared trains on the servers' GPUs, and rollout.engine.devices has {len(gpus_of(engine))} "
            f"for update.deepspeed.processes={update.deepspeed.processes}: give each process its own"
        )


def _separate(config: RunSections, placement: SeparatePlacement) -> Iterator[str]:
    yield from _servers(config, "separate")
    yield from _on_gpus(config, "separate")
    engine, update = config.rollout.engine, config.update
    if not isinstance(engine, VllmEngineConfig) or update is None:
        return
    taken = set(gpus_of(engine))
    both = sorted(taken & {str(gpu) for gpu in placement.update})
    if not taken:
        yield "placement.type=separate needs to know the servers' GPUs: set rollout.engine.devices, for example ['0']"
    if both:
        yield f"placement.update and rollout.engine.devices share GPU {both[0]}: give either its own, or type=shared"
    if len(set(placement.update)) != update.deepspeed.processes:
        yield (
            f"placement.update has {len(set(placement.update))} GPUs for update.deepspeed.processes="
            f"{update.deepspeed.processes}: give each process its own"
        )


def _servers(config: RunSections, kind: str) -> Iterator[str]:
    engine = config.rollout.engine
    if not isinstance(engine, VllmEngineConfig):
        yield (
            f"placement.type={kind} places servers, but rollout.engine.type={engine.type} has none: "
            "set rollout.engine.type=vllm"
        )
    elif engine.urls:
        yield (
            f"placement.type={kind} starts its servers here, but rollout.engine.urls names others: "
            "set placement={type: machines}"
        )


def _on_gpus(config: RunSections, kind: str) -> Iterator[str]:
    update = config.update
    if update is None:
        yield f"placement.type={kind} places an update, but update=null has none: leave placement out"
    elif update.deepspeed.hostfile is not None:
        yield (
            f"placement.type={kind} trains here, but update.deepspeed.hostfile trains elsewhere: "
            "set placement={type: machines}"
        )
    elif update.deepspeed.device != "cuda":
        yield (
            f"placement.type={kind} trains on GPUs, but update.deepspeed.device={update.deepspeed.device}: "
            "set update.deepspeed.device=cuda"
        )


def _machines(config: RunSections) -> Iterator[str]:
    engine, update = config.rollout.engine, config.update
    elsewhere = isinstance(engine, VllmEngineConfig) and engine.urls
    if not elsewhere and (update is None or update.deepspeed.hostfile is None):
        yield (
            "placement.type=machines names no other machine: set rollout.engine.urls, or update.deepspeed.hostfile, "
            "or leave placement out"
        )
