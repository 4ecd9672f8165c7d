"""Remedies: settings with which a run fits a machine, or a machine for its settings; and settings for idle GPUs.

Every change is tried as the configuration names it, and then on the GPUs that the machine has. A larger machine is
proposed where no change of settings suffices.
"""

from collections.abc import Iterator
from functools import cache
from shlex import join

from coevo.configs.errors import CoevoError
from coevo.configs.load.load import change, validate
from coevo.configs.placement import MachinesPlacement, SeparatePlacement
from coevo.configs.rollout.engine import VllmEngineConfig, indices_of, width_of
from coevo.configs.run import RunConfig
from coevo.models.capacity.devices import Machine, named
from coevo.models.capacity.shape import Shape, shape_of
from coevo.tasks.preflight.memory import Lengths, MissingGpusError, needs

CHANGES = (
    ("rollout.engine.rows=128",),
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
"""Changes of settings to try, cheapest first; ``{gpus}`` is the number of the machine's GPUs."""
MACHINES = ("1xa100-80", "1xh200", "4xa100-80", "4xh200", "8xh200")
"""Machines to try if no change of settings suffices, smallest first."""


def remedy(config: RunConfig, machine: Machine, lengths: Lengths, words: int) -> str:
    """Change that would fit: the first of ``CHANGES`` on this machine, else the first of ``MACHINES``."""
    shapes = cache(lambda policy: shape_of(policy, words))
    for tried in _tries(config, machine):
        try:
            changed = changed_by(config, tried)
            if all(need.fits for need in needs(changed, machine, shapes(changed.policy), lengths)):
                return f"set {join(tried)}"
        except CoevoError:
            continue
    shape = shapes(config.policy)
    enough = next((name for name in MACHINES if _fits(config, named(name), shape, lengths)), None)
    return "choose a smaller model" if enough is None else f"take a machine such as {enough}, or a smaller model"


def changed_by(config: RunConfig, overrides: tuple[str, ...]) -> RunConfig:
    """The configuration with overrides. Raises ``ConfigError`` if they do not go together with it."""
    return validate(change(config.model_dump(mode="json"), overrides), source=config.recipe)


def spread(config: RunConfig, count: int) -> tuple[str, ...]:
    """Overrides with which a run uses ``count`` GPUs; none if it leaves their choice to other machines or to its user.

    Servers keep the number of GPUs that each is split over.
    """
    engine, update = config.rollout.engine, config.update
    if update is None or update.deepspeed.hostfile is not None or update.deepspeed.device != "cuda" or count < 1:
        return ()
    trains = (f"update.deepspeed.processes={count}",)
    if isinstance(config.placement, MachinesPlacement) or (isinstance(engine, VllmEngineConfig) and engine.urls):
        return trains
    if not isinstance(engine, VllmEngineConfig):
        return trains
    wide = width_of(engine)
    if count < wide:
        return ()
    groups = [",".join(map(str, range(at, at + wide))) for at in range(0, count - wide + 1, wide)]
    listed = ",".join(f'"{group}"' for group in groups)
    shared = ("placement={type: shared}",) if isinstance(config.placement, SeparatePlacement) else ()
    return (*trains, f"rollout.engine.replicas={len(groups)}", f"rollout.engine.devices=[{listed}]", *shared)


def used(config: RunConfig) -> int:
    """Number of this machine's GPUs that a run uses."""
    engine, update, placement = config.rollout.engine, config.update, config.placement
    served = indices_of(engine) if isinstance(engine, VllmEngineConfig) else set[int]()
    trains = update is not None and update.deepspeed.device == "cuda" and update.deepspeed.hostfile is None
    trained = set(range(update.deepspeed.processes)) if update is not None and trains else set[int]()
    if isinstance(placement, SeparatePlacement):
        trained = set(placement.update)
    return len(served | trained)


def _tries(config: RunConfig, machine: Machine) -> Iterator[tuple[str, ...]]:
    """Overrides to try, cheapest first; on a machine with fewer GPUs each with those that use only these."""
    count = len(machine.gpus)
    fewer = spread(config, count) if used(config) > count else ()
    if fewer:
        yield fewer
    for overrides in CHANGES:
        own = tuple(text.format(gpus=count or 1) for text in overrides)
        names = {text.partition("=")[0] for text in own}
        yield (*(text for text in fewer if text.partition("=")[0] not in names), *own)


def _fits(config: RunConfig, machine: Machine, shape: Shape, lengths: Lengths) -> bool:
    try:
        return all(need.fits for need in needs(config, machine, shape, lengths))
    except MissingGpusError:
        return False
