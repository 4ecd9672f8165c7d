"""Changes of settings that a remedy tries, each as overrides, cheapest first."""

from collections.abc import Iterator

from coevo.configs.placement_config import SeparatePlacement, SharedPlacement
from coevo.configs.rollout.engine_config import TransformersEngineConfig, width_of
from coevo.configs.run_config import RunConfig
from coevo.tasks.preflight.gpus import author_servers, started

AUTHOR = "bank.writer.author.engine"
SHARES = (0.4, 0.2)
"""Shares of a GPU to try for a frozen author."""
CHANGES = (
    ("update.deepspeed.tokens=8192",),
    ("rollout.engine.gpu_memory_utilization=0.4",),
    ("placement={{type: shared}}",),
    ("placement={{type: shared}}", "rollout.engine.gpu_memory_utilization=0.4"),
    ("update.deepspeed.activation_checkpointing=true",),
    ("update.deepspeed.activation_checkpointing=true", "update.deepspeed.tokens=4096"),
    ("update.deepspeed.zero_stage=3", "update.deepspeed.processes={gpus}"),
    ("policy.dtype=bfloat16",),
    ("policy.dtype=bfloat16", "update.deepspeed.activation_checkpointing=true", "update.deepspeed.tokens=4096"),
    (
        "update.deepspeed.settings={{zero_optimization: {{stage: 2, offload_optimizer: {{device: cpu}}}}}}",
        "update.deepspeed.zero_stage=2",
    ),
    (
        "update.deepspeed.settings={{zero_optimization: {{stage: 2, offload_optimizer: {{device: cpu}}}}}}",
        "update.deepspeed.zero_stage=2",
        "policy.dtype=bfloat16",
        "update.deepspeed.activation_checkpointing=true",
        "update.deepspeed.tokens=4096",
    ),
    ("policy.lora={{r: 64, alpha: 64}}",),
    ("policy.lora={{r: 64, alpha: 64}}", "policy.dtype=bfloat16"),
    (
        "policy.lora={{r: 64, alpha: 64}}",
        "policy.dtype=bfloat16",
        "update.deepspeed.activation_checkpointing=true",
        "update.deepspeed.tokens=4096",
    ),
    (
        "policy.lora={{r: 64, alpha: 64}}",
        "policy.dtype=bfloat16",
        "update.deepspeed.activation_checkpointing=true",
        "update.deepspeed.tokens=4096",
        "update.deepspeed.zero_stage=1",
    ),
)
"""Changes of the update and the servers; ``{gpus}`` is the number of the machine's GPUs."""


def changes(config: RunConfig, count: int, free: int | None) -> Iterator[tuple[str, ...]]:
    """Changes to try for a run.

    Args:
        config: the run.
        count: number of the machine's GPUs.
        free: a GPU that the run leaves idle.
    """
    yield from _of_author(config, free)
    yield from _fewer_rows(config)
    for overrides in CHANGES:
        yield tuple(text.format(gpus=count or 1) for text in overrides)


def on_cpu(config: RunConfig) -> tuple[str, ...]:
    """Overrides with which an update on GPUs of this machine trains on its CPU, beside one server; none for others."""
    update, engine = config.update, started(config.rollout.engine)
    if update is None or update.deepspeed.device != "cuda" or update.deepspeed.hostfile is not None:
        return ()
    wide = ("update.deepspeed.processes=1",) if update.deepspeed.processes > 1 else ()
    servers = ("rollout.engine.replicas=1", "rollout.engine.devices=[]") if engine and engine.replicas > 1 else ()
    sends = ("rollout.engine.sync=files",) if engine and engine.sync in ("nccl", "ipc") else ()
    return ("update.deepspeed.device=cpu", *wide, *_without_placement(config, "null"), *servers, *sends)


def on_hosts(config: RunConfig) -> tuple[str, ...]:
    """Overrides with which an update trains on other machines."""
    assert config.update is not None
    wide = ("update.deepspeed.processes=1",) if config.update.deepspeed.processes > 1 else ()
    return ("update.deepspeed.hostfile=FILE", *wide, *_without_placement(config, "{type: machines}"))


def author_among(config: RunConfig, count: int) -> tuple[str, ...]:
    """Overrides with which a frozen author's server is on the last of so many GPUs."""
    engine = author_servers(config)
    if engine is None:
        return ()
    wide = min(width_of(engine), count)
    return (f"{AUTHOR}.replicas=1", f'{AUTHOR}.devices=["{",".join(map(str, range(count - wide, count)))}"]')


def _without_placement(config: RunConfig, other: str) -> tuple[str, ...]:
    """Another placement instead of one that trains on GPUs of this machine."""
    return (f"placement={other}",) if isinstance(config.placement, SharedPlacement | SeparatePlacement) else ()


def _of_author(config: RunConfig, free: int | None) -> Iterator[tuple[str, ...]]:
    """Changes of a frozen author's servers: an idle GPU, smaller shares, and at last the host."""
    if author_servers(config) is None:
        return
    if free is not None:
        yield (f"{AUTHOR}.replicas=1", f'{AUTHOR}.devices=["{free}"]')
    smaller, own = f"{AUTHOR}.gpu_memory_utilization=", "rollout.engine.gpu_memory_utilization="
    yield from ((f"{smaller}{share}",) for share in SHARES)
    yield from ((f"{own}0.4", f"{smaller}{share}") for share in SHARES)
    yield from (("placement={type: shared}", f"{own}0.4", f"{smaller}{share}") for share in SHARES)
    yield (f"{AUTHOR}={{type: transformers}}",)


def _fewer_rows(config: RunConfig) -> Iterator[tuple[str, ...]]:
    """Half of the rows that are decoded at once, a quarter, and so on; servers need no memory for more."""
    engine = config.rollout.engine
    rows = engine.rows if isinstance(engine, TransformersEngineConfig) else 1
    while rows := rows // 2:
        yield (f"rollout.engine.rows={rows}",)
