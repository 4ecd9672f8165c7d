"""The trainer's processes: who takes which micro-batch, and how they tell each other what came of it.

All hold the same batch and walk through it in step: in every round each takes one micro-batch, since DeepSpeed's
collectives wait for all. One that has none left takes one that counts for nothing.
"""

import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.ops import __compatible_ops__
from torch import Tensor

from models.trainer.batch import Batch, microbatches

# Compiled at first use, which takes a minute and a compiler.
__compatible_ops__["deepspeed_shm_comm"] = False

PATIENCE = timedelta(days=30)
"""How long processes wait for each other, between updates as long as a rollout takes; the parent kills what hangs."""

T = TypeVar("T")


def join(meeting: Path | None = None) -> None:
    """Form the process group, once in the life of a process.

    Args:
        meeting: file that all processes of the group see, and nobody has used before, with ``RANK``, ``WORLD_SIZE``
            and ``LOCAL_RANK`` in the environment; none for a group of this process alone.
    """
    if meeting is None:
        os.environ.setdefault("LOCAL_RANK", "0")
        number, count = 0, 1
        store: Any = dist.HashStore()  # type: ignore[attr-defined]  # needs no port that another run could hold
    else:
        number, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        store = dist.FileStore(str(meeting), count)  # type: ignore[attr-defined]  # likewise
    device = deepspeed.get_accelerator()
    device.set_device(int(os.environ["LOCAL_RANK"]))
    backend = "gloo" if device.device_name() == "cpu" else device.communication_backend_name()
    backends = {"cpu:gloo", f"{device.device_name()}:{backend}"}  # what is said travels over gloo, gradients need not
    dist.init_process_group(",".join(sorted(backends)), store=store, rank=number, world_size=count, timeout=PATIENCE)
    deepspeed.init_distributed(backend, auto_mpi_discovery=False)


def rank() -> int:
    """This process's number; 0 speaks to the parent and writes files."""
    return dist.get_rank()


def world() -> int:
    """How many processes there are."""
    return dist.get_world_size()


def least_segment(zero_stage: int) -> int:
    """The ``least`` of ``pack``: forwards that wait for those of other processes must be alike in number and order."""
    return int(world() > 1 or zero_stage == 3)


def rounds(batch: Batch, rows: list[int], tokens: int) -> list[list[int]]:
    """Rows cut into micro-batches of at most ``tokens`` tokens each; with several processes, some for each of them."""
    runs = microbatches(batch, rows, tokens)
    if world() == 1 or not runs:
        return runs
    count = -(-len(runs) // world()) * world()
    least, most = 1, tokens
    while least < most:  # the smallest budget that needs no further round
        middle = (least + most) // 2
        if len(microbatches(batch, rows, middle)) <= count:
            most = middle
        else:
            least = middle + 1
    return microbatches(batch, rows, most)


def mine(runs: Sequence[list[int]]) -> Iterator[tuple[list[int], bool]]:
    """What this process computes, round by round: a micro-batch, and whether it counts."""
    for start in range(0, len(runs), world()):
        index = start + rank()
        counts = index < len(runs)
        yield runs[index if counts else start], counts


def in_order(parts: list[T]) -> list[T]:
    """What came of each micro-batch, in their order, from what came of those that this process computed."""
    if world() == 1:
        return parts
    told: list[list[T]] = [[] for _ in range(world())]
    dist.all_gather_object(told, parts)
    return [part[turn] for turn in range(max(map(len, told))) for part in told if turn < len(part)]


def summed(values: Tensor) -> Tensor:
    """The sum over all processes, in place; ``values`` is on the CPU."""
    if world() > 1:
        dist.all_reduce(values)
    return values


def make_room() -> None:
    """Give back the memory that torch keeps for later: a server may wake on the same GPUs."""
    deepspeed.get_accelerator().empty_cache()
    summed(torch.zeros(()))  # all have


def heard(line: str | None) -> str:
    """What process 0 has to say to all, which only it knows."""
    words = [line]
    if world() > 1:
        dist.broadcast_object_list(words, src=0)
    assert words[0] is not None
    return words[0]
