"""Launch of the trainer's processes by the parent, here or on a cluster: an input pipe and an output pipe for each.

Every process holds the other end of its input pipe, and ends with the parent, however that ends. Several meet in a
folder of this machine, or on a cluster in torch's TCPStore: process 0 listens at its node's address and says at which
port, and the others get that on their input.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from coevo.configs.update.update_config import DeepSpeedConfig
from coevo.utilities.errors import CoevoError
from coevo.utilities.local_http import LOOPBACK
from coevo.utilities.processes import (
    HERE,
    ONE_CORE,
    UTF8,
    Launch,
    Launcher,
    Resources,
    ServerProcess,
    last_error,
    size_of,
)

CHILD = "coevo.models.trainer.child"
POOL = "placement.pools.trainer"
FORWARDED = ("NCCL_", "GLOO_")
"""Prefixes of the environment variables that nodes get from this machine."""


class TrainerRanks:
    """The trainer's processes, which work together or not at all.

    Args:
        config: their device and number.
        log: file that their standard error is appended to.
        variables: of their environment, in addition to their places' or overriding them.
        launcher: source of their places.
        resources: what each takes.

    Raises:
        CoevoError: the GPUs are too few, or there is no room for all.
    """

    def __init__(
        self,
        config: DeepSpeedConfig,
        log: Path,
        variables: Mapping[str, str] | None = None,
        launcher: Launcher = HERE,
        resources: Resources = ONE_CORE,
    ) -> None:
        self._launcher, self._log, self._logged = launcher, log, size_of(log)
        self._processes: list[ServerProcess] = []
        here = launcher is HERE
        decided = {**environment_of_ranks(config), **(variables or {})}
        if here:
            _check(config, {**os.environ, **decided})
        self._places = launcher.places(config.processes, resources, POOL)
        together = config.processes > 1
        self._meeting: Path | None = None
        if here and together:
            self._meeting = Path(tempfile.mkdtemp(prefix="trainer-", dir=log.absolute().parent))
        try:
            meeting = [str(self._meeting or self._places[0].host)] if together else []
            for rank, place in enumerate(self._places):
                self._processes.append(place.start(self._launch(rank, meeting, decided)))
        except BaseException:
            self.close()
            raise
        self._met = here or not together

    def _launch(self, rank: int, meeting: list[str], decided: Mapping[str, str]) -> Launch:
        here, node = self._launcher is HERE, dict[str, str]()
        if self._places[0].host == LOOPBACK and sys.platform == "linux":
            node["GLOO_SOCKET_IFNAME"] = "lo"  # the machine's name need not lead to it
        if not here:
            node |= {name: value for name, value in os.environ.items() if name.startswith(FORWARDED)}
        if meeting:
            node |= {"RANK": str(rank), "WORLD_SIZE": str(len(self._places)), "LOCAL_RANK": str(rank if here else 0)}
        command = ["{python}", "-P", "-m", CHILD, *meeting]
        return Launch(command, {**node, **decided}, self._log, append=True, leash=True, replies=True, mark=str(rank))

    @property
    def pid(self) -> int:
        """Id of process 0 on its machine."""
        return self._processes[0].pid

    def send(self, path: Path) -> str:
        """Make a file or directory known to all of them; returns its name for them."""
        return self._launcher.send(path, self._places)

    def space(self, path: Path) -> str:
        """Name for them of a file or directory that process 0 is to write."""
        return self._launcher.space(path)

    def fetch(self, name: str, path: Path) -> None:
        """Bring what process 0 wrote under a name to ``path``, the one that the name was made for."""
        self._places[0].fetch(name, path)

    def forget(self, name: str) -> None:
        """Remove the copies of what was sent; the file or directory itself stays."""
        for place in self._places:
            place.forget(name)

    def write(self, line: bytes) -> None:
        """Write to the input of process 0. Raises ``BrokenPipeError`` if it has ended."""
        self._processes[0].write(line)

    def line(self, seconds: float) -> bytes | None:
        """Next line of process 0; None for none in that time, and one without its end at the end of the process."""
        line = self._processes[0].line(seconds)
        if line is None or self._met:
            return line
        self._met = True
        if line.startswith(b"{"):  # it failed before
            return line
        with suppress(BrokenPipeError):  # one of them has ended, which is found next
            for process in self._processes[1:]:
                process.write(line)
        return None

    def ended(self) -> bool:
        """True if one of them has ended."""
        return not all(process.runs() for process in self._processes)

    def last_words(self) -> tuple[str, bool]:
        """Reason of their end, in one line, and whether others may do better: one died on a cluster, without a message.

        Call it only after an end.
        """
        dead = [rank for rank, process in enumerate(self._processes) if not process.runs()]
        told = next((words for rank in dead if (words := self._error_of(rank))), "")
        return told or self._death(dead[0] if dead else 0), not told and self._launcher is not HERE

    def _death(self, rank: int) -> str:
        """Sentence about a process that has ended without a message."""
        process, several = self._processes[rank], len(self._processes) > 1
        status = process.status()
        who = f"process {rank} of the trainer's {len(self._processes)}" if several else "the trainer"
        where = f" on {self._places[rank].host}" if self._launcher is not HERE else ""
        said = "" if several else f": {last_error(self._log, self._logged)}"
        suspected = "; the system kills processes if memory runs out" if status == -signal.SIGKILL else ""
        how = process.lost or f"exit status {status}"
        return f"{who}{where} died ({how}){said}; see {self._log}{'' if process.lost else suspected}"

    def _error_of(self, rank: int) -> str:
        """Error line that a process left in its output."""
        with suppress(ValueError):
            while line := self._processes[rank].line(0.0):
                if line.startswith(b"{") and "error" in (reply := json.loads(line)):
                    return str(reply["error"])
        return ""

    def kill(self) -> None:
        """Kill them all at once."""
        for process in self._processes:
            process.kill()

    def close(self) -> None:
        """End them, and leave nothing behind."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.close()
        for place in self._places:
            place.end()
        if self._meeting is not None:
            shutil.rmtree(self._meeting, ignore_errors=True)


def _check(config: DeepSpeedConfig, environment: Mapping[str, str]) -> None:
    """Check that each process has a visible GPU of its own.

    Raises:
        CoevoError: they are too few.
    """
    seen = environment.get("CUDA_VISIBLE_DEVICES") if config.device == "cuda" else None
    if seen and len(seen.split(",")) < config.processes:
        raise CoevoError(
            f"update.deepspeed.processes={config.processes}, but CUDA_VISIBLE_DEVICES={seen}: "
            "each process needs its own GPU"
        )


def environment_of_ranks(config: DeepSpeedConfig) -> dict[str, str]:
    """Environment that decides from where processes import, in any working directory, and where they compute."""
    decided = {"PYTHONPATH": "{path}", "PYTHONSAFEPATH": "1", **UTF8, "DS_ACCELERATOR": config.device}
    if config.device == "cuda":
        decided["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # repeatable sums
    return decided
