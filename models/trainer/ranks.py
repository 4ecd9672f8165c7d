"""The trainer's processes: assignment of micro-batches, and exchange of results.

All hold the same batch and walk through it in step: in every round each takes one micro-batch, since DeepSpeed's
collectives wait for all. A process without one takes a copy that does not count.
"""

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.ops import __compatible_ops__
from torch import Tensor

from coevo.models.trainer.packing import Runs

# Compiled at first use, which takes a minute and a compiler; DeepSpeed's settings cannot switch it off once installed.
__compatible_ops__["deepspeed_shm_comm"] = False

TIMEOUT = timedelta(days=30)
"""Maximum wait of processes for each other; between updates that is a whole rollout. The parent kills hanging ones."""

MEETING = timedelta(minutes=10)
"""Maximum wait of a cluster's processes for process 0; the others load libraries meanwhile."""

T = TypeVar("T")


def join(meeting: Path | None = None) -> None:
    """Form the process group, once in the life of a process.

    Args:
        meeting: unused file that all processes of the group see, with ``RANK``, ``WORLD_SIZE`` and ``LOCAL_RANK`` in
            the environment; None for a group of this process alone.
    """
    if meeting is None:
        os.environ.setdefault("LOCAL_RANK", "0")
        store: Any = dist.HashStore()  # type: ignore[attr-defined]  # needs no port that another run could hold
        _form(store, 0, 1)
    else:
        number, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        _form(dist.FileStore(str(meeting), count), number, count)  # type: ignore[attr-defined]  # likewise


def join_at(address: str, tell: Callable[[int], None]) -> None:
    """Form the process group of a cluster's processes, once in the life of a process.

    Args:
        address: for process 0, the address of this machine that it listens at; for the others, ``HOST:PORT`` of it.
        tell: called by process 0 with its port, before it waits for the others.
    """
    number, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if number == 0:
        listener = socket.create_server((address, 0))
        port = listener.getsockname()[1]
        tell(port)
        # A store that makes its own socket listens at every address.
        where: dict[str, Any] = {"is_master": True, "master_listen_fd": listener.detach()}
    else:
        address, _, written = address.rpartition(":")
        port, where = int(written), {"is_master": False}
    store: Any = dist.TCPStore(  # type: ignore[attr-defined]
        address, port, count, timeout=MEETING, wait_for_workers=False, **where
    )
    _form(store, number, count)


def _form(store: Any, number: int, count: int) -> None:
    device = deepspeed.get_accelerator()
    device.set_device(int(os.environ["LOCAL_RANK"]))
    backend = "gloo" if device.device_name() == "cpu" else device.communication_backend_name()
    backends = {"cpu:gloo", f"{device.device_name()}:{backend}"}  # objects travel over gloo, gradients need not
    dist.init_process_group(",".join(sorted(backends)), store=store, rank=number, world_size=count, timeout=TIMEOUT)
    deepspeed.init_distributed(backend, auto_mpi_discovery=False)


def rank() -> int:
    """Number of this process; 0 talks to the parent and writes files."""
    return dist.get_rank()


def world() -> int:
    """Number of processes."""
    return dist.get_world_size()


def rounds(cut: Callable[[int], Runs], tokens: int) -> Runs:
    """Micro-batches of at most ``tokens`` tokens each; with several processes, enough for all of them.

    Args:
        cut: micro-batches of a minibatch for a maximum of tokens.
        tokens: maximum per micro-batch.
    """
    runs = cut(tokens)
    if world() == 1 or not runs:
        return runs
    count = -(-len(runs) // world()) * world()
    least, most = 1, tokens
    while least < most:  # the smallest budget that needs no further round
        middle = (least + most) // 2
        if len(cut(middle)) <= count:
            most = middle
        else:
            least = middle + 1
    return cut(most)


def mine(runs: Sequence[list[int]]) -> Iterator[tuple[list[int], bool]]:
    """Micro-batches of this process, round by round, each with a flag that is False if it does not count."""
    for start in range(0, len(runs), world()):
        index = start + rank()
        counts = index < len(runs)
        yield runs[index if counts else start], counts


def in_order(parts: list[T]) -> list[T]:
    """Results of all micro-batches, in their order, from the results of this process."""
    if world() == 1:
        return parts
    told: list[list[T]] = [[] for _ in range(world())]
    dist.all_gather_object(told, parts)
    return [part[turn] for turn in range(max(map(len, told))) for part in told if turn < len(part)]


def summed(values: Tensor) -> Tensor:
    """Sum over all processes, in place; ``values`` is on the CPU."""
    if world() > 1:
        dist.all_reduce(values)
    return values


def make_room() -> None:
    """Free the memory that torch keeps for later: a server may wake on the same GPUs."""
    deepspeed.get_accelerator().empty_cache()
    summed(torch.zeros(()))  # wait until all have


def shared(value: T | None) -> T:
    """A value that only process 0 has."""
    values = [value]
    if world() > 1:
        dist.broadcast_object_list(values, src=0)
    assert values[0] is not None
    return values[0]


def broadcast(values: Tensor) -> None:
    """Overwrite a contiguous tensor on the CPU by that of process 0."""
    dist.broadcast(values, src=0)
