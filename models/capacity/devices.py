"""Devices of this machine, and data of known GPUs."""

import re
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from coevo.utilities.errors import CoevoError
from coevo.utilities.free_space import free

if TYPE_CHECKING:
    import torch

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU or a CPU.

    Attributes:
        name: of a GPU, or ``cpu``.
        memory: bytes.
        flops: dense matrix products per second, in the device's usual precision.
        bandwidth: memory bandwidth in bytes per second.
    """

    name: str
    memory: int
    flops: float
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Machine:
    """Hardware for a run.

    Attributes:
        gpus: its GPUs, in order.
        host: its CPU, with the memory of the machine.
        disk: free bytes where the workspace is; None if unknown.
        assumed: True for a named machine, which also stands for servers and trainers elsewhere.
    """

    gpus: tuple[Device, ...]
    host: Device
    disk: int | None = None
    assumed: bool = False

    def __str__(self) -> str:
        memory = f"{self.host.memory / GIB:.0f} GiB of memory"
        if not self.gpus:
            return f"no GPU, {memory}"
        first = self.gpus[0]
        return f"{len(self.gpus)} x {first.name} of {first.memory / GIB:.0f} GiB, {memory}"


KNOWN = {
    "a30": Device("A30", 24 * GIB, 165e12, 0.93e12),
    "l40s": Device("L40S", 45 * GIB, 362e12, 0.86e12),
    "a100-40": Device("A100-40", 39 * GIB, 312e12, 1.56e12),
    "a100-80": Device("A100-80", 79 * GIB, 312e12, 2.0e12),
    "h100": Device("H100", 79 * GIB, 989e12, 3.35e12),
    "h200": Device("H200", 139 * GIB, 989e12, 4.8e12),
}
"""GPUs by name: usable memory, and the bfloat16 rate and bandwidth of the data sheet."""

HOST_SHARE = 200 * GIB
"""Memory of a named machine per GPU."""
CPU_BANDWIDTH = 20e9
MATRIX, TRIES = 512, 3


def here(workspace: Path = Path()) -> Machine:
    """Measure this machine, with the disk of a workspace."""
    gpus = tuple(map(_gpu, range(gpus_here())))
    return Machine(gpus, Device("cpu", psutil.virtual_memory().total, _cpu_flops(), CPU_BANDWIDTH), free(workspace))


def gpus_here() -> int:
    """Number of GPUs of this machine that PyTorch can use; 0 without PyTorch."""
    if not _has_torch():
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def named(text: str) -> Machine:
    """Machine by its GPUs, for example ``4xh200``. Raises ``CoevoError`` for any other form."""
    found = re.fullmatch(r"(?:(\d{1,4})x)?([a-z0-9-]+)", text.lower())
    if found is None or found[2] not in KNOWN or found[1] == "0":
        raise CoevoError(f"{text!r} is not a machine: write 4xh200, with one of {', '.join(KNOWN)}")
    count = int(found[1] or 1)
    host = Device("cpu", count * HOST_SHARE, 1e12, CPU_BANDWIDTH)
    return Machine((KNOWN[found[2]],) * count, host, assumed=True)


def _has_torch() -> bool:
    """True if PyTorch is installed: a policy behind an endpoint does without."""
    return find_spec("torch") is not None


def _gpu(index: int) -> Device:
    import torch

    properties = torch.cuda.get_device_properties(index)
    plain = properties.name.upper().replace("-", " ").split()
    likely = next((known for known in KNOWN.values() if known.name.partition("-")[0] in plain), KNOWN["a30"])
    return Device(properties.name, properties.total_memory, likely.flops, likely.bandwidth)


def _cpu_flops() -> float:
    """Rate of one thread in float32: the best of a few products; 0 without PyTorch, which would compute."""
    if not _has_torch():
        return 0.0
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        left = torch.ones(MATRIX, MATRIX)
        return 2 * MATRIX**3 / min(_seconds(left) for _ in range(TRIES))
    finally:
        torch.set_num_threads(threads)


def _seconds(left: "torch.Tensor") -> float:
    since = time.perf_counter()
    left @ left
    return time.perf_counter() - since
