"""How much memory an update and a rollout take, by formula.

Each item is there in a phase of the iteration, and ``peak`` is the phase that takes most. Bytes are of one process, or
of one engine. Counted are tensors; ``PROCESS`` and ``CONTEXT`` stand for all else that a process holds.

Numbers a parameter that is trained, in float32 unless it says otherwise (n processes share what its stage partitions):

    weights 4, or 2 in bfloat16        /n in stage 3
    master copy 4                      none in stage 0, else /n
    gradients 4                        /n from stage 2 on
    moments of AdamW 8                 /n from stage 1 on
    the step's own copies 4, or 8      stage 0; /n from stage 1 on, where the gradients are flattened first
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from models.prefill_rows import FORWARD, ROW
from models.prefix_tree import SPARE
from models.shape import Shape

GIB = 2**30
PROCESS = GIB
"""A process with its libraries, in the memory of the machine."""
CONTEXT = 3 * GIB // 2
"""What CUDA and its libraries hold of a GPU for one process."""
BUCKET = 500_000_000
"""Numbers in DeepSpeed's reduction bucket unless its settings say otherwise."""
LIVE = 1_000_000_000
"""Most parameters that stage 3 gathers at a time unless its settings say otherwise."""
FLOAT, DOUBLE = 4, 8
LOGITS = 3 * FLOAT
"""Bytes an output of the vocabulary takes: log-probs, kept for the gradient, and two of their kind for the entropy."""
ADAPTED = 7
"""Linear layers of a block, each with an adapter."""


Phase = Literal["always", "rollout", "update", "backward", "step"]
"""When something is there; ``update`` is in both of the backward pass and the optimizer's step."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something that takes memory.

    Attributes:
        what: in words.
        bytes: how many.
        phase: when.
        offloaded: whether it is in the memory of the machine instead of the device's.
    """

    what: str
    bytes: int
    phase: Phase = "always"
    offloaded: bool = False


@dataclass(frozen=True, slots=True)
class Training:
    """An update as far as its memory goes.

    Attributes:
        shape: the policy.
        stage: ZeRO stage.
        processes: that share the update.
        tokens: most of a micro-batch, prompts and answers.
        answers: most of these that are answers.
        reference: whether a frozen policy is held beside it.
        critic: whether a critic is trained beside it.
        checkpointed: whether activations inside a layer are computed again.
        offload: whether optimizer and gradients are in the memory of the machine.
        offload_weights: whether the weights are, between layers.
        bucket: numbers in the reduction bucket.
    """

    shape: Shape
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


def training(plan: Training) -> list[Item]:
    """What one process of an update holds."""
    items = _model(plan, "policy")
    if plan.reference:
        items.append(Item("reference", _reference(plan), offloaded=plan.offload_weights))
    if plan.critic:
        items += _model(plan, "critic")
    return [*items, *_passing(plan)]


def peak(items: Iterable[Item]) -> int:
    """Bytes at the most at one time."""
    taken: dict[str, int] = dict.fromkeys(("always", "rollout", "update", "backward", "step"), 0)
    for item in items:
        taken[item.phase] += item.bytes
    return taken["always"] + max(taken["rollout"], taken["update"] + max(taken["backward"], taken["step"]))


def activations(shape: Shape, checkpointed: bool) -> int:
    """Bytes a token of a micro-batch, kept in all layers for the backward pass."""
    if checkpointed:
        return shape.layers * shape.bytes * (shape.hidden + 2 * shape.keys) + _block(shape)
    return shape.layers * _block(shape)


def cache(shape: Shape) -> int:
    """Bytes of keys and values a token."""
    return 2 * shape.layers * shape.keys * shape.bytes


def generating(shape: Shape, rows: int, prompt: int, answer: int) -> list[Item]:
    """What the transformers engine holds: weights, keys and values of all rows and of the prefix tree, one step.

    Args:
        shape: of the policy.
        rows: decoded at once.
        prompt: tokens of the longest prompt; the prompts are taken to have nothing in common.
        answer: tokens of the longest answer.
    """
    kept = SPARE * rows * prompt
    columns = max(rows, min(rows * prompt, max(FORWARD, ROW + prompt)))
    step = columns * shape.bytes * (2 * shape.hidden + 3 * shape.inner) + 4 * DOUBLE * rows * shape.vocabulary
    return [
        Item("engine: weights", shape.bytes * shape.parameters + (FLOAT * shape.trainable if shape.rank else 0)),
        Item("engine: keys and values", cache(shape) * (rows * (prompt + answer) + kept), "rollout"),
        Item("engine: a step", step, "rollout"),
    ]


def _model(plan: Training, whose: str) -> list[Item]:
    """Weights and what trains them."""
    shape, alone = plan.shape, plan.stage == 0
    sharing = plan.processes if plan.stage else 1
    of_gradients = plan.processes if plan.stage >= 2 else 1
    trained = shape.trainable
    return [
        Item(f"{whose}: weights", _weights(plan), offloaded=plan.offload_weights),
        Item(f"{whose}: master copy", 0 if alone else FLOAT * trained // sharing, offloaded=plan.offload),
        Item(f"{whose}: moments of AdamW", 2 * FLOAT * trained // sharing, offloaded=plan.offload),
        Item(f"{whose}: gradients", FLOAT * trained // of_gradients, "update", plan.offload),
        Item(f"{whose}: the step's copies", FLOAT * (1 if alone else 2) * trained // sharing, "step", plan.offload),
    ]


def _weights(plan: Training) -> int:
    """The base in its own precision, adapters in float32."""
    shape = plan.shape
    base = shape.bytes * shape.parameters + (FLOAT * shape.trainable if shape.rank else 0)
    return base // (plan.processes if plan.stage == 3 else 1)


def _reference(plan: Training) -> int:
    """Values of what is trained; in stage 3 a partitioned copy of everything."""
    shape = plan.shape
    return _weights(plan) if plan.stage == 3 else (FLOAT if shape.rank else shape.bytes) * shape.trainable


def _passing(plan: Training) -> list[Item]:
    """What one micro-batch takes, and what is sent between processes."""
    shape = plan.shape
    number = FLOAT if shape.rank else shape.bytes
    live = min(LIVE, shape.parameters) * shape.bytes if plan.stage == 3 else 0
    return [
        Item("activations", plan.tokens * activations(shape, plan.checkpointed), "backward"),
        Item("logits", plan.answers * shape.vocabulary * LOGITS, "backward"),
        Item("DeepSpeed's buckets", (plan.bucket * number if plan.stage else 0) + live, "backward"),
    ]


def _block(shape: Shape) -> int:
    """Bytes a token that autograd keeps of one block, as transformers computes it, attention by SDPA."""
    return _adapted(shape) if shape.rank else _full(shape)


def _full(shape: Shape) -> int:
    """All weights are trained: each keeps its input, each norm its input in float32 and its normalised values."""
    number, attended = shape.bytes, shape.queries + shape.keys
    norms = 2 * shape.hidden * (FLOAT + 2 * number)
    heads = attended * (FLOAT + number) if shape.normed else 0
    return norms + heads + number * (5 * shape.queries + 4 * shape.inner)


def _adapted(shape: Shape) -> int:
    """Adapters are trained: frozen weights keep nothing, each adapter its input and what lies between its matrices.

    Below float32 each adapter keeps an input of its own, in float32.
    """
    number, attended = shape.bytes, shape.queries + shape.keys
    norms = 2 * shape.hidden * FLOAT + (attended * FLOAT if shape.normed else 0)
    between = ADAPTED * shape.rank * FLOAT
    if number == FLOAT:
        return norms + between + FLOAT * (2 * shape.hidden + 5 * shape.queries + 4 * shape.inner)
    inputs = FLOAT * (5 * shape.hidden + shape.queries + shape.inner)
    return norms + between + inputs + number * (4 * shape.queries + 3 * shape.inner)
