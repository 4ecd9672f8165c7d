"""Remedies: settings with which a run fits a machine, or a machine for its settings; and settings for idle GPUs.

Every change is tried as the configuration names it, and then on the GPUs that the machine has. A larger machine is
proposed where no change of settings suffices.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from shlex import join

from coevo.configs.load.load import change, validate
from coevo.configs.placement_config import SeparatePlacement, SharedPlacement, trainer_pool
from coevo.configs.policy_config import ScratchPolicyConfig
from coevo.configs.rollout.rollout_config import TransformersEngineConfig, VllmEngineConfig, indices_of, width_of
from coevo.configs.run_config import RunConfig
from coevo.models.capacity.devices import Machine, named
from coevo.models.capacity.model_shape import ModelShape, shape_of
from coevo.tasks.preflight.gpus import MissingGpusError, servers_here, trainer_gpus, writer_model_servers
from coevo.tasks.preflight.memory import Lengths, needs
from coevo.utilities.errors import CoevoError

MACHINES = ("1xa100-80", "1xh200", "4xa100-80", "4xh200", "8xh200")
"""Machines to try if no change of settings suffices, smallest first."""
SMALL, WORDS = ScratchPolicyConfig(), 1000
"""A model that is smaller than any that needs a remedy, and its vocabulary."""
WRITER_MODEL = "bank.writer.model.engine"
SHARES = (0.4, 0.2)
"""Shares of a GPU to try for a frozen writer model."""
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


@dataclass(frozen=True, slots=True)
class Offer:
    """How a user changes settings: those of a run to start unless something else is given.

    Attributes:
        before: instruction, up to the settings.
        after: its rest after them.
        fixed: settings that cannot change, each with all below it.
    """

    before: str = "set "
    after: str = ""
    fixed: tuple[str, ...] = ()

    def text(self, *overrides: str) -> str:
        """Instruction with these settings."""
        return f"{self.before}{join(overrides)}{self.after}"

    @property
    def example(self) -> str:
        """How to change a setting that is named before; empty for a run to start."""
        return "" if self == Offer() else f": {self.before}KEY=VALUE{self.after}"

    def allows(self, name: str) -> bool:
        """Return True if a setting can change."""
        return not any(name == fixed or name.startswith(f"{fixed}.") for fixed in self.fixed)


def remedy(config: RunConfig, machine: Machine, lengths: Lengths, words: int, offer: Offer) -> str:
    """The first change of settings that would fit on this machine, else a larger machine or a smaller model.

    Args:
        config: the run.
        machine: machine of the run.
        lengths: tokens of prompts and answers.
        words: size of the vocabulary of a policy from scratch.
        offer: how its user changes settings.
    """
    shapes = cache(lambda policy: shape_of(policy, words))
    for tried in _tries(config, machine):
        if not all(map(offer.allows, map(_name, tried))):
            continue
        try:
            changed = changed_by(config, tried)
            if _fits(changed, machine, shapes(changed.policy), lengths):
                return offer.text(*tried)
        except CoevoError:
            continue
    return ", or ".join(_others(config, machine, lengths, shapes(config.policy), offer))


def _others(config: RunConfig, machine: Machine, lengths: Lengths, shape: ModelShape, offer: Offer) -> Iterator[str]:
    """Remedies where no change of settings on this machine suffices."""
    smaller = offer.allows("policy") and _fits(config, machine, shape_of(SMALL, WORDS), lengths)
    enough = next(_machines(config, lengths, shape, offer), None)
    if enough is not None:
        yield f"take a machine such as {enough}"
    if smaller:
        yield "choose a smaller model" if enough is None else "a smaller model"
    elif enough is None:
        yield f"no setting and no machine up to {MACHINES[-1]} is enough"


def _machines(config: RunConfig, lengths: Lengths, shape: ModelShape, offer: Offer) -> Iterator[str]:
    """Machines with room: those for the settings as they are, then those whose GPUs more processes have to share."""
    machines = [(name, named(name)) for name in MACHINES]
    yield from (name for name, machine in machines if _fits(config, machine, shape, lengths))
    for name, machine in machines:
        if (wider := spread(config, len(machine.gpus))) and _fits(changed_by(config, wider), machine, shape, lengths):
            yield f"{name} and {offer.text(*wider)}"


def changed_by(config: RunConfig, overrides: tuple[str, ...]) -> RunConfig:
    """The configuration with overrides. Raises ``ConfigError`` if they do not go together with it."""
    return validate(change(config.model_dump(mode="json"), overrides), source=config.recipe)


def spread(config: RunConfig, count: int) -> tuple[str, ...]:
    """Overrides with which a run uses ``count`` GPUs; none if it leaves their choice to other machines or to its user.

    Servers keep the number of GPUs that each is split over.
    """
    engine, update = config.rollout.engine, config.update
    if update is None or trainer_pool(config.placement) is not None or update.deepspeed.device != "cuda" or count < 1:
        return ()
    trains = (f"update.deepspeed.processes={count}",)
    if isinstance(engine, VllmEngineConfig) and engine.urls:
        return trains
    if not isinstance(engine, VllmEngineConfig):
        return trains
    servers = _servers(engine, count) if count >= width_of(engine) else ()
    shared = ("placement={type: shared}",) if isinstance(config.placement, SeparatePlacement) else ()
    return (*trains, *servers, *shared) if servers else ()


def _servers(engine: VllmEngineConfig | None, count: int) -> tuple[str, ...]:
    """Overrides with as many servers as ``count`` GPUs have room for, each split as before if there are enough."""
    if engine is None:
        return ()
    wide = min(width_of(engine), count)
    groups = [",".join(map(str, range(at, at + wide))) for at in range(0, count - wide + 1, wide)]
    listed = ",".join(f'"{group}"' for group in groups)
    return (f"rollout.engine.replicas={len(groups)}", f"rollout.engine.devices=[{listed}]")


def used(config: RunConfig) -> int:
    """Number of this machine's GPUs that a run uses."""
    return len(_gpus(config) | _named(writer_model_servers(config)))


def _gpus(config: RunConfig) -> set[int]:
    """GPUs that a run names for servers of its policy, or trains on."""
    return trainer_gpus(config) | _named(servers_here(config))


def _named(engine: VllmEngineConfig | None) -> set[int]:
    return set() if engine is None else indices_of(engine)


def _tries(config: RunConfig, machine: Machine) -> Iterator[tuple[str, ...]]:
    """Overrides to try, cheapest first; each with those that use only the devices of this machine."""
    count = len(machine.gpus)
    first = _among(config, count) if count else on_cpu(config)
    if first:
        yield first
    free = next((gpu for gpu in range(count) if gpu not in _gpus(config)), None)
    for own in changes(config, count, free):
        names = set(map(_name, own))
        yield (*(text for text in first if _name(text) not in names), *own)


def _among(config: RunConfig, count: int) -> tuple[str, ...]:
    """Overrides with which a run uses the first GPUs alone, where it names others."""
    moved = writer_model_among(config, count) if max(_named(writer_model_servers(config)), default=-1) >= count else ()
    if max(_gpus(config), default=-1) < count:
        return moved
    return (*(spread(config, count) or _servers(servers_here(config), count)), *moved)


def _name(override: str) -> str:
    return override.partition("=")[0]


def _fits(config: RunConfig, machine: Machine, shape: ModelShape, lengths: Lengths) -> bool:
    try:
        return all(need.fits for need in needs(config, machine, shape, lengths))
    except MissingGpusError:
        return False


def changes(config: RunConfig, count: int, free: int | None) -> Iterator[tuple[str, ...]]:
    """Changes to try for a run.

    Args:
        config: the run.
        count: number of the machine's GPUs.
        free: a GPU that the run leaves idle.
    """
    yield from _of_writer_model(config, free)
    yield from _fewer_rows(config)
    for overrides in CHANGES:
        yield tuple(text.format(gpus=count or 1) for text in overrides)


def on_cpu(config: RunConfig) -> tuple[str, ...]:
    """Overrides with which an update on GPUs of this machine trains on its CPU, beside one server; none for others."""
    update, engine = config.update, servers_here(config)
    if update is None or update.deepspeed.device != "cuda" or trainer_pool(config.placement) is not None:
        return ()
    wide = ("update.deepspeed.processes=1",) if update.deepspeed.processes > 1 else ()
    servers = ("rollout.engine.replicas=1", "rollout.engine.devices=[]") if engine and engine.replicas > 1 else ()
    sends = ("rollout.engine.sync=files",) if engine and engine.sync in ("nccl", "ipc") else ()
    return ("update.deepspeed.device=cpu", *wide, *_without_placement(config, "null"), *servers, *sends)


def writer_model_among(config: RunConfig, count: int) -> tuple[str, ...]:
    """Overrides with which a frozen writer model's server is on the last of so many GPUs."""
    engine = writer_model_servers(config)
    if engine is None:
        return ()
    wide = min(width_of(engine), count)
    return (
        f"{WRITER_MODEL}.replicas=1",
        f'{WRITER_MODEL}.devices=["{",".join(map(str, range(count - wide, count)))}"]',
    )


def _without_placement(config: RunConfig, other: str) -> tuple[str, ...]:
    """Another placement instead of one that trains on GPUs of this machine."""
    return (f"placement={other}",) if isinstance(config.placement, SharedPlacement | SeparatePlacement) else ()


def _of_writer_model(config: RunConfig, free: int | None) -> Iterator[tuple[str, ...]]:
    """Changes of a frozen writer model's servers: an idle GPU, smaller shares, and at last the host."""
    if writer_model_servers(config) is None:
        return
    if free is not None:
        yield (f"{WRITER_MODEL}.replicas=1", f'{WRITER_MODEL}.devices=["{free}"]')
    smaller, own = f"{WRITER_MODEL}.gpu_memory_utilization=", "rollout.engine.gpu_memory_utilization="
    yield from ((f"{smaller}{share}",) for share in SHARES)
    yield from ((f"{own}0.4", f"{smaller}{share}") for share in SHARES)
    yield from (("placement={type: shared}", f"{own}0.4", f"{smaller}{share}") for share in SHARES)
    yield (f"{WRITER_MODEL}={{type: transformers}}",)


def _fewer_rows(config: RunConfig) -> Iterator[tuple[str, ...]]:
    """Half of the rows that are decoded at once, a quarter, and so on; servers need no memory for more."""
    engine = config.rollout.engine
    rows = engine.rows if isinstance(engine, TransformersEngineConfig) else 1
    while rows := rows // 2:
        yield (f"rollout.engine.rows={rows}",)
