"""Launch of the trainer's processes by the parent: an input pipe, an output pipe, and a common end.

One process is started directly, several by DeepSpeed's launcher. All processes hold the other end of the input pipe,
and end with the parent, however that ends.
"""

import base64
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from coevo.configs.update.update_config import DeepSpeedConfig
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import UTF8, Launch, ServerProcess

CHILD = "coevo.models.trainer.child"
FAILED = "failed-{}"
"""Error file of process ``{}`` in the meeting place, written before it ends; process 0 reports to the parent."""


class TrainerRanks(Protocol):
    """The trainer's processes, here (``Launched``) or on a cluster (``cluster_ranks``)."""

    @property
    def pid(self) -> int:
        """Process id of the process, or of what started several."""
        ...

    def send(self, path: Path) -> str:
        """Make a file or directory known to all of them; returns its name for them."""
        ...

    def space(self, path: Path) -> str:
        """Name for them of a file or directory that process 0 is to write."""
        ...

    def fetch(self, name: str, path: Path) -> None:
        """Bring what process 0 wrote under a name to ``path``, the one that the name was made for."""
        ...

    def forget(self, name: str) -> None:
        """Remove the copies of what was sent; the file or directory itself stays."""
        ...

    def write(self, line: bytes) -> None:
        """Write to the input of process 0. Raises ``BrokenPipeError`` if it has ended."""
        ...

    def read(self, seconds: float) -> bytes | None:
        """Part of their replies; None for nothing in that time, and ``b""`` at their end."""
        ...

    def ended(self) -> bool:
        """True if one of them has ended; they work together or not at all."""
        ...

    def last_words(self) -> str:
        """Reason of their end, in one line; call it only after an end."""
        ...

    def kill(self) -> None:
        """Kill them all at once."""
        ...

    def close(self) -> None:
        """End them, and leave nothing behind."""
        ...


class Launched:
    """The trainer's processes on this machine.

    Args:
        config: their place and number.
        log: file that their standard error is appended to.
        variables: of their environment, in addition to our own or overriding them.

    Raises:
        CoevoError: the GPUs are too few.
    """

    def __init__(self, config: DeepSpeedConfig, log: Path, variables: Mapping[str, str] | None = None) -> None:
        variables = variables or {}
        devices = _here(config, {**os.environ, **variables})
        self._count = len(devices)
        self._log = log
        self._logged = log.stat().st_size if log.exists() else 0
        self._meeting: Path | None = None
        command = [sys.executable, "-P", "-m", CHILD]
        if config.processes > 1:
            self._meeting = Path(tempfile.mkdtemp(prefix="trainer-", dir=log.absolute().parent))
            command = _launcher(devices, self._meeting)
        environment = {**os.environ, **environment_of_ranks(config), **variables}
        self._process = ServerProcess(Launch(command, environment, log, append=True, leash=True, replies=True))

    @property
    def pid(self) -> int:
        """Process id of the process, or of the launcher of several."""
        return self._process.pid

    def send(self, path: Path) -> str:
        """As in ``TrainerRanks``: they see the same files."""
        return str(path.absolute())

    space = send

    def fetch(self, name: str, path: Path) -> None:
        """As in ``TrainerRanks``: it is there."""

    def forget(self, name: str) -> None:
        """As in ``TrainerRanks``: there is no copy."""

    def write(self, line: bytes) -> None:
        """Write to the input pipe. Raises ``BrokenPipeError`` if the processes have ended."""
        self._process.write(line)

    def read(self, seconds: float) -> bytes | None:
        """Part of their replies; None for nothing in that time, and ``b""`` at their end."""
        return self._process.read(seconds)

    def kill(self) -> None:
        """Kill them all at once."""
        self._process.kill()

    def close(self) -> None:
        """End them, and leave nothing behind."""
        self._process.close()
        if self._meeting is not None:
            shutil.rmtree(self._meeting, ignore_errors=True)

    def ended(self) -> bool:
        """True if one of them has ended; they work together or not at all."""
        return not self._process.runs()

    def last_words(self) -> str:
        """Reason of their end, in one line; call it only after an end."""
        status = self._process.status()
        if self._meeting is None:
            return f"the trainer died (exit status {status}): {self._last_line()}; see {self._log}{_suspicion(status)}"
        told = sorted(self._meeting.glob(FAILED.format("*")), key=lambda path: path.stat().st_mtime_ns)
        if told:
            return told[0].read_text(encoding="utf-8")
        status -= 256 * (status > 128)  # a signal, as the launcher passes it on
        return (
            f"one of the trainer's {self._count} processes died (exit status {status}); see {self._log}"
            f"{_suspicion(status)}"
        )

    def _last_line(self) -> str:
        """Last line that they have written to the log."""
        written = self._log.read_bytes()[self._logged :].decode(errors="replace")
        return (written.strip() or "it wrote nothing").splitlines()[-1]


def _suspicion(status: int) -> str:
    """Suspected reason of an end without a message."""
    return "; the system kills processes if memory runs out" if status == -signal.SIGKILL else ""


def _here(config: DeepSpeedConfig, environment: Mapping[str, str]) -> list[str]:
    """Device of each process on this machine: its index among the visible GPUs.

    Raises:
        CoevoError: the GPUs are too few.
    """
    seen = environment.get("CUDA_VISIBLE_DEVICES") if config.device == "cuda" else None
    devices = seen.split(",") if seen else list(map(str, range(config.processes)))
    if len(devices) < config.processes:
        raise CoevoError(
            f"update.deepspeed.processes={config.processes}, but CUDA_VISIBLE_DEVICES={seen}: "
            "each process needs its own GPU"
        )
    return devices[: config.processes]


def _launcher(devices: list[str], meeting: Path) -> list[str]:
    """Command of DeepSpeed's launcher for several processes."""
    options = {
        "world_info": base64.urlsafe_b64encode(json.dumps({"localhost": devices}).encode()).decode(),
        "node_rank": "0",
        "log_level": "error",
    }
    launch = [
        sys.executable,
        "-P",
        "-m",
        "deepspeed.launcher.launch",
        *(f"--{name}={it}" for name, it in options.items()),
    ]
    return [*launch, "--module", "--no_local_rank", CHILD, str(meeting)]


def environment_of_ranks(config: DeepSpeedConfig, loopback: bool = True) -> dict[str, str]:
    """Environment that decides from where processes import, in any working directory, and where they compute.

    Args:
        config: their device.
        loopback: True for processes that meet on 127.0.0.1.
    """
    decided = {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONSAFEPATH": "1",
        **UTF8,
        "DS_ACCELERATOR": config.device,
    }
    if config.device == "cuda":
        decided["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # repeatable sums
    if loopback and sys.platform == "linux":
        decided["GLOO_SOCKET_IFNAME"] = "lo"  # the machine's name need not lead to it
    return decided
