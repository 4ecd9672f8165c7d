"""Memory of an update and of a rollout, and disk of a run, by formula.

Each item exists in a phase of the iteration, and ``peak`` is the phase with the most bytes. Bytes are of one process,
or of one engine. Tensors are counted; ``PROCESS`` and ``CONTEXT`` stand for everything else in a process.

Bytes per trained parameter, in float32 unless noted (n processes share the tensors that the stage partitions):

    weights 4, or 2 in bfloat16        /n in stage 3
    master copy 4                      none in stage 0, else /n
    gradients 4                        /n from stage 2 on
    moments of AdamW 8                 /n from stage 1 on
    the step's own copies 4, or 8      stage 0; /n from stage 1 on, where the gradients are flattened first

DeepSpeed's ``estimate_zero*_model_states_mem_needs`` and ``accelerate estimate-memory`` count weights and states of the
optimizer alone: no activations, no cache of a rollout, no phases, and DeepSpeed's always assume 16-bit training.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, get_args

from coevo.configs.sections import LARGE_OPTIMIZER
from coevo.models.capacity.model_shape import ModelShape
from coevo.models.engines.transformers.prefill_rows import FORWARD, MAX_TREE_RATIO, ROW

GIB = 2**30
PROCESS = GIB
"""CPU memory of a process with its libraries, in bytes."""
CONTEXT = 3 * GIB // 2
"""GPU memory of CUDA and its libraries per process, in bytes."""
BUCKET = 500_000_000
"""Default numbers in DeepSpeed's reduction bucket."""
LIVE = 1_000_000_000
"""Default maximum of parameters that stage 3 gathers at a time."""
VALUES: Final = 256 * 151_936
"""Maximum logits of a chunk of the loss, which takes two tensors of this size in float32: twice 148 MiB."""
FLOAT, DOUBLE = 4, 8
LOGITS = 2 * FLOAT
"""Bytes per output of the vocabulary in a chunk of the loss: logits and their gradient."""
ACTIVATIONS = "activations"
"""Name of the item of activations."""
ADAPTED = 7
"""Linear layers per block, each with an adapter."""


MemoryPhase = Literal["always", "start", "rollout", "update", "backward", "step", "save"]
"""Phase in which an item exists: ``start`` is that of loading weights; ``update`` covers the backward pass, the
optimizer's step and the save after it.
"""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """One use of memory.

    Attributes:
        what: in words.
        bytes: its size.
        phase: the phase in which it exists.
        offloaded: True if it is in CPU memory instead of the device's.
    """

    what: str
    bytes: int
    phase: MemoryPhase = "always"
    offloaded: bool = False


@dataclass(frozen=True, slots=True)
class Training:
    """Settings of an update that decide its memory.

    Attributes:
        shape: the policy.
        stage: ZeRO stage.
        processes: processes that share the update.
        tokens: maximum tokens of a micro-batch, prompts and answers.
        answers: maximum of these tokens that are answers.
        reference: True if a frozen policy is in memory as well.
        critic: True if a critic is trained as well.
        checkpointed: True if activations inside a layer are recomputed.
        offload: True if optimizer and gradients are in CPU memory.
        offload_weights: True if weights are in CPU memory between layers.
        bucket: numbers in the reduction bucket.
    """

    shape: ModelShape
    stage: int
    processes: int
    tokens: int
    answers: int
    reference: bool = True
    critic: bool = False
    checkpointed: bool = False
    offload: bool = False
    offload_weights: bool = False
    bucket: int = BUCKET


def training(plan: Training) -> list[MemoryUse]:
    """Memory items of one process of an update."""
    items = _model(plan, "policy")
    if plan.reference:
        items.append(MemoryUse("reference", _reference(plan), offloaded=plan.offload_weights))
    if plan.critic:
        items += _model(plan, "critic")
    return [*items, *_passing(plan)]


def peak(items: Iterable[MemoryUse]) -> int:
    """Maximum bytes at one time."""
    taken: dict[str, int] = dict.fromkeys(get_args(MemoryPhase), 0)
    for item in items:
        taken[item.phase] += item.bytes
    updating = taken["update"] + max(taken["backward"], taken["step"], taken["save"])
    return taken["always"] + max(taken["start"], taken["rollout"], updating)


def activations(shape: ModelShape, checkpointed: bool) -> int:
    """Bytes per token of a micro-batch, kept in all layers for the backward pass."""
    if checkpointed:
        return shape.layers * shape.bytes * (shape.hidden + 2 * shape.keys) + _block(shape)
    return shape.layers * _block(shape)


def cache(shape: ModelShape) -> int:
    """Bytes of keys and values per token."""
    return 2 * shape.layers * shape.keys * shape.bytes


def generating(shape: ModelShape, rows: int, prompt: int, answer: int) -> list[MemoryUse]:
    """Memory items of the transformers engine: weights, keys and values of all rows and of the prefix tree, one step.

    Args:
        shape: of the policy.
        rows: rows decoded at once.
        prompt: tokens of the longest prompt; prompts are assumed to share no prefix.
        answer: tokens of the longest answer.
    """
    kept = MAX_TREE_RATIO * rows * prompt
    columns = max(rows, min(rows * prompt, max(FORWARD, ROW + prompt)))
    step = columns * shape.bytes * (2 * shape.hidden + 3 * shape.inner) + 4 * DOUBLE * rows * shape.vocabulary
    return [
        MemoryUse("engine: weights", shape.bytes * shape.parameters + (FLOAT * shape.trainable if shape.rank else 0)),
        MemoryUse("engine: keys and values", cache(shape) * (rows * (prompt + answer) + kept), "rollout"),
        MemoryUse("engine: a step", step, "rollout"),
    ]


def _model(plan: Training, whose: str) -> list[MemoryUse]:
    """Weights and the tensors that train them."""
    shape, alone = plan.shape, plan.stage == 0
    sharing = plan.processes if plan.stage else 1
    of_gradients = plan.processes if plan.stage >= 2 else 1
    trained = shape.trainable
    return [
        MemoryUse(f"{whose}: weights", _weights(plan), offloaded=plan.offload_weights),
        MemoryUse(f"{whose}: master copy", 0 if alone else FLOAT * trained // sharing, offloaded=plan.offload),
        MemoryUse(f"{whose}: moments of AdamW", 2 * FLOAT * trained // sharing, offloaded=plan.offload),
        MemoryUse(f"{whose}: gradients", FLOAT * trained // of_gradients, _held(plan), plan.offload),
        MemoryUse(
            f"{whose}: the step's copies", FLOAT * (1 if alone else 2) * trained // sharing, "step", plan.offload
        ),
    ]


def _held(plan: Training) -> MemoryPhase:
    """Phase of the gradients: of half precision, DeepSpeed's stage 1 keeps a buffer from the start."""
    half = plan.shape.bytes < FLOAT and not plan.shape.rank
    return "always" if half and plan.stage == 1 and not plan.offload else "update"


def _weights(plan: Training) -> int:
    """Bytes of the base in its own precision, and of adapters in float32."""
    shape = plan.shape
    base = shape.bytes * shape.parameters + (FLOAT * shape.trainable if shape.rank else 0)
    return base // (plan.processes if plan.stage == 3 else 1)


def _reference(plan: Training) -> int:
    """Bytes of the trained values; in stage 3 of a partitioned copy of everything."""
    shape = plan.shape
    return _weights(plan) if plan.stage == 3 else (FLOAT if shape.rank else shape.bytes) * shape.trainable


def _passing(plan: Training) -> list[MemoryUse]:
    """Memory items of one micro-batch and of communication between processes."""
    shape = plan.shape
    number = FLOAT if shape.rank else shape.bytes
    live = min(LIVE, shape.parameters) * shape.bytes if plan.stage == 3 else 0
    return [
        MemoryUse(ACTIVATIONS, plan.tokens * activations(shape, plan.checkpointed), "backward"),
        MemoryUse("logits", min(plan.answers * shape.vocabulary, VALUES) * LOGITS, "backward"),
        MemoryUse("DeepSpeed's buckets", (plan.bucket * number if plan.stage else 0) + live, "backward"),
    ]


def _block(shape: ModelShape) -> int:
    """Bytes per token that autograd keeps of one block, as transformers computes it, attention by SDPA."""
    return _adapted(shape) if shape.rank else _full(shape)


def _full(shape: ModelShape) -> int:
    """All weights trained: each keeps its input, each norm its input in float32 and its normalised values."""
    number, attended = shape.bytes, shape.queries + shape.keys
    norms = 2 * shape.hidden * (FLOAT + 2 * number)
    heads = attended * (FLOAT + number) if shape.normed else 0
    return norms + heads + number * (5 * shape.queries + 4 * shape.inner)


def _adapted(shape: ModelShape) -> int:
    """Adapters trained: frozen weights keep nothing, each adapter its input and the value between its matrices."""
    number, attended = shape.bytes, shape.queries + shape.keys
    norms = 2 * shape.hidden * FLOAT + (attended * FLOAT if shape.normed else 0)
    between = ADAPTED * shape.rank
    return norms + number * (between + 2 * shape.hidden + 5 * shape.queries + 4 * shape.inner)


# Disk: the policy and the optimizer of each revision, episodes and the bank aside.

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
