"""Memory of a run per device, needed and available, before anything is started."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from coevo.configs.placement_config import SeparatePlacement, SharedPlacement, trainer_pool
from coevo.configs.rollout.rollout_config import VllmEngineConfig
from coevo.configs.run_config import RunConfig
from coevo.configs.update.update_config import UpdateConfig
from coevo.models.capacity.devices import GIB, Machine
from coevo.models.capacity.footprint import (
    ACTIVATIONS,
    BUCKET,
    CONTEXT,
    PROCESS,
    MemoryUse,
    Training,
    generating,
    peak,
    saving,
    training,
)
from coevo.models.capacity.model_shape import SIZES, ModelShape
from coevo.tasks.preflight.gpus import check_gpus, server_gpus, servers_here, trainer_gpus, writer_model_servers
from coevo.tasks.preflight.writer_model_memory import least, serving, share, writer_model_on_gpu, writer_model_on_host

MAIN = 2 * GIB
"""Bytes of host memory of the process that runs the loop, with its stores and trackers."""
ASLEEP = 3 * GIB
"""Bytes that a sleeping server keeps on its GPU: CUDA, its graphs and buffers."""
HEAP = 0.6
"""Memory that the heap of a trainer on a CPU takes beside its activations, as a share of them.

glibc reuses freed blocks badly: 0.6 in a run at the shape of Qwen3-0.6B, 1.0 in an update of it alone, and 0 with
``MALLOC_MMAP_THRESHOLD_=1048576``, which makes an update 1.8 times as long.
"""
USABLE = 0.95
"""Share of a GPU that tensors can use; fragmentation takes the rest."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of prompts and answers.

    Attributes:
        shortest: of the shortest prompt.
        longest: of the longest prompt.
        answer: of the longest answer.
        last: of the last prompt of an episode of mean length.
    """

    shortest: int
    longest: int
    answer: int
    last: int

    @property
    def mean(self) -> float:
        """Mean tokens of a prompt, between the shortest and the longest."""
        return (self.shortest + self.longest) / 2


@dataclass(frozen=True, slots=True)
class Need:
    """Memory of a run on one device.

    Attributes:
        where: description of the device.
        bytes: peak use.
        there: available bytes; None if unknown.
        parts: parts of the use, largest first.
    """

    where: str
    bytes: int
    there: int | None
    parts: tuple[MemoryUse, ...]

    @property
    def fits(self) -> bool:
        """Report whether the device has enough memory."""
        return self.there is None or self.bytes <= self.there

    @property
    def lack(self) -> str:
        """Needed and available memory in words, with the largest parts."""
        first = ", ".join(f"{item.what} {item.bytes / GIB:.1f}" for item in self.parts[:3])
        there = 0 if self.there is None else self.there
        return f"{self.where} has {there / GIB:.1f} GiB, and {self.bytes / GIB:.1f} are needed ({first})"


def needs(config: RunConfig, machine: Machine, shape: ModelShape, lengths: Lengths) -> list[Need]:
    """Memory of a run on every kind of device, for the device of each kind with the highest use.

    Raises:
        MissingGpusError: the configuration uses GPUs that the machine lacks.
    """
    trained = [] if config.update is None else training(plan_of(config.update, shape, lengths))
    check_gpus(config, machine)
    return [*_gpu_needs(config, machine, shape, lengths, trained), _host(config, machine, shape, lengths, trained)]


def plan_of(update: UpdateConfig, shape: ModelShape, lengths: Lengths) -> Training:
    """The parts of the update that determine its memory, assuming no shared prefixes."""
    deepspeed = update.deepspeed
    zero: Any = (deepspeed.settings or {}).get("zero_optimization", {})
    bucket = int(zero.get("reduce_bucket_size", BUCKET))
    return Training(
        shape=shape,
        stage=deepspeed.zero_stage,
        processes=deepspeed.processes,
        tokens=deepspeed.tokens,
        answers=deepspeed.tokens * lengths.answer // (lengths.answer + lengths.shortest),
        critic=update.critic is not None,
        checkpointed=deepspeed.activation_checkpointing,
        offload=_offloaded(zero, "offload_optimizer"),
        offload_weights=_offloaded(zero, "offload_param"),
        bucket=bucket
        if deepspeed.device == "cuda"
        else min(bucket, shape.trainable),  # the unused rest is never touched
    )


def _offloaded(zero: dict[str, Any], section: str) -> bool:
    return bool((zero.get(section) or {}).get("device", "none") != "none")


def _gpu_needs(
    config: RunConfig, machine: Machine, shape: ModelShape, lengths: Lengths, trained: list[MemoryUse]
) -> Iterator[Need]:
    if machine.gpus:
        yield from _shares(config, machine, shape, lengths)
    if config.update is not None and config.update.deepspeed.device == "cuda":
        yield _updating(config, machine, [item for item in trained if not item.offloaded])
    if machine.gpus:
        yield from _serving(config, machine)


def _shares(config: RunConfig, machine: Machine, shape: ModelShape, lengths: Lengths) -> Iterator[Need]:
    """The least memory of servers within their shares of a GPU."""
    whole, engine, writer_model = machine.gpus[0].memory, servers_here(config), writer_model_servers(config)
    if engine is not None:
        items = least(engine, shape, lengths.longest + lengths.answer)
        yield Need("a server's share of its GPU", peak(items) + CONTEXT, share(engine, whole), _largest(items))
    if writer_model is not None and (items := writer_model_on_gpu(config)):
        yield Need(
            "the writer model's share of its GPU", peak(items) + CONTEXT, share(writer_model, whole), _largest(items)
        )


def _updating(config: RunConfig, machine: Machine, kept: list[MemoryUse]) -> Need:
    """The fullest GPU of the update; on other machines, no server of this one is beside it."""
    alone = [*kept, MemoryUse("CUDA and its libraries", CONTEXT)]
    here = trainer_gpus(config)
    items = max(([*alone, *_servers_on(config, machine, gpu)] for gpu in sorted(here)), key=peak, default=alone)
    there = int(machine.gpus[0].memory * USABLE) if machine.gpus else None
    if (pool := trainer_pool(config.placement)) is not None:
        there = None if pool.gib is None else int(pool.gib * GIB * USABLE)
    return Need("each GPU of the update", peak(items), there, _largest(items))


def _serving(config: RunConfig, machine: Machine) -> Iterator[Need]:
    """The fullest GPU that servers of the run and of a frozen writer model share without the update."""
    both = server_gpus(servers_here(config), machine) & server_gpus(writer_model_servers(config), machine)
    places = [_servers_on(config, machine, gpu) for gpu in sorted(both - trainer_gpus(config))]
    if places:
        items = max(places, key=peak)
        yield Need("each GPU of the writer model", peak(items), int(machine.gpus[0].memory * USABLE), _largest(items))


def _servers_on(config: RunConfig, machine: Machine, gpu: int) -> list[MemoryUse]:
    """Memory of servers on a GPU. Those of a frozen writer model run from its first question on, and never sleep."""
    engine, writer_model, whole = servers_here(config), writer_model_servers(config), machine.gpus[0].memory
    found = list[MemoryUse]()
    apart = isinstance(config.placement, SeparatePlacement) and gpu in config.placement.update
    if engine is not None and isinstance(config.placement, SharedPlacement):
        found = [
            MemoryUse("server, awake", share(engine, whole), "rollout"),
            MemoryUse("server, asleep", ASLEEP, "update"),
        ]
    elif engine is not None and gpu in server_gpus(engine, machine) and not apart:
        found = [MemoryUse("server", share(engine, whole))]
    if writer_model is not None and gpu in server_gpus(writer_model, machine):
        found.append(MemoryUse("the writer model's server", share(writer_model, whole)))
    return found


def _host(config: RunConfig, machine: Machine, shape: ModelShape, lengths: Lengths, trained: list[MemoryUse]) -> Need:
    update = config.update
    items = [MemoryUse("the loop", MAIN), *_engine_on_host(config, machine, shape, lengths)]
    items += writer_model_on_host(config, machine)
    if update is not None and trainer_pool(config.placement) is None:  # otherwise this machine only coordinates
        deepspeed = update.deepspeed
        here = deepspeed.processes
        taken = [item for item in trained if item.offloaded or deepspeed.device == "cpu"]
        items += [MemoryUse(f"update: {item.what}", here * item.bytes, item.phase) for item in taken]
        kept = [int(HEAP * item.bytes) for item in taken if item.what == ACTIVATIONS]
        items += [MemoryUse("update: its heap", here * size, "update") for size in kept]
        items += [MemoryUse("update: processes", here * PROCESS), MemoryUse("update: a save", saving(shape), "save")]
        if deepspeed.device == "cuda":  # each process loads the whole policy before it moves its part
            copies = here * (1 if update.critic is None else 2)
            items.append(
                MemoryUse("update: the policy as it is loaded", copies * shape.bytes * shape.parameters, "start")
            )
    return Need("the machine's memory", peak(items), machine.host.memory, _largest(items))


def _engine_on_host(config: RunConfig, machine: Machine, shape: ModelShape, lengths: Lengths) -> list[MemoryUse]:
    engine, rollout = config.rollout.engine, config.rollout
    if not isinstance(engine, VllmEngineConfig):
        rows = min(engine.rows, max(rollout.tasks * rollout.group_size, config.evaluation.tasks))
        return generating(shape, rows, lengths.longest, lengths.answer)
    if engine.urls:
        return []
    held, probe = serving(engine, shape, machine), MemoryUse("probe", shape.bytes * shape.parameters, "start")
    sleeps = isinstance(config.placement, SharedPlacement) and (config.placement.sleep == 1 or _adapted(config))
    kept = SIZES[engine.dtype] * shape.parameters if sleeps and machine.gpus else 0
    return [MemoryUse("servers", engine.replicas * (held + kept)), probe]


def _adapted(config: RunConfig) -> bool:
    """Report whether servers hold a fixed base model (LoRA), which they keep while asleep."""
    return getattr(config.policy, "lora", None) is not None


def _largest(items: list[MemoryUse]) -> tuple[MemoryUse, ...]:
    return tuple(sorted((item for item in items if item.bytes), key=lambda item: -item.bytes))
