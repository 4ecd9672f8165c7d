"""The trainer's processes as the parent sees them: a pipe in, a pipe out, and one end.

One process is started as it is, several by DeepSpeed's launcher: one launcher on this machine, or one on each machine
of a hostfile, by ssh. All processes hold the other end of the pipe in, and end with the parent, whatever ends that.
(DeepSpeed's own way to other machines, pdsh, does not pass the pipes on.)
"""

import base64
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from configs.deepspeed import DeepSpeedConfig
from configs.errors import CoevoError

CHILD = "models.trainer.child"
FAILED = "failed-{}"
"""What process number ``{}`` writes into the meeting place before it ends with an error; process 0 tells the parent."""
FORWARDED = ("NCCL_", "GLOO_")
"""Beginnings of the variables that other machines get from here."""


class Launched:
    """The trainer's processes.

    Args:
        config: where they run, and how many.
        log: file that their standard error is appended to.
        variables: of their environment, besides or instead of our own.

    Raises:
        CoevoError: the hostfile is not there, or a line of it says something else.
    """

    def __init__(self, config: DeepSpeedConfig, log: Path, variables: Mapping[str, str]) -> None:
        file = config.hostfile
        nodes = {"localhost": _here(config, os.environ | variables)} if file is None else _hosts(Path(file))
        self._count = sum(map(len, nodes.values()))
        self._log = log
        self._logged = log.stat().st_size if log.exists() else 0
        self._meeting: Path | None = None
        environment = {**_environment(config), **variables}
        commands = [[sys.executable, "-P", "-m", CHILD]]
        if config.processes > 1 or config.hostfile is not None:
            self._meeting = Path(tempfile.mkdtemp(prefix="trainer-", dir=log.absolute().parent))
            commands = [_launcher(nodes, number, self._meeting) for number in range(len(nodes))]
        if config.hostfile is not None:
            commands = [_by_ssh(*each, environment) for each in zip(nodes, commands, strict=True)]
        self._processes = [
            _spawn(command, environment, log, first=not number) for number, command in enumerate(commands)
        ]

    @property
    def pid(self) -> int:
        """Of the process, or of the launcher of several."""
        return self._processes[0].pid

    @property
    def replies(self) -> int:
        """The descriptor of the pipe out."""
        assert self._processes[0].stdout is not None
        return self._processes[0].stdout.fileno()

    def write(self, line: bytes) -> None:
        """Into the pipe. Raises ``BrokenPipeError`` when the processes have ended."""
        assert self._processes[0].stdin is not None
        self._processes[0].stdin.write(line)

    def kill(self) -> None:
        """End them all at once."""
        for process in self._processes:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)  # each is a session of its own, with all that it has started

    def close(self) -> None:
        """End them, and leave nothing behind."""
        self.kill()
        for process in self._processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        if self._meeting is not None:
            shutil.rmtree(self._meeting, ignore_errors=True)  # a process on another machine may still be leaving

    def last_words(self) -> str:
        """Why they ended, one line; they have."""
        status = self._processes[0].wait()
        if self._meeting is None:
            written = self._log.read_bytes()[self._logged :].decode(errors="replace")
            last = (written.strip() or "it wrote nothing").splitlines()[-1]
            return f"the trainer died (exit status {status}): {last}; see {self._log}{_suspicion(status)}"
        told = sorted(self._meeting.glob(FAILED.format("*")), key=lambda path: path.stat().st_mtime_ns)
        if told:
            return told[0].read_text(encoding="utf-8")
        status -= 256 * (status > 128)  # a signal, as the launcher passes it on
        return (
            f"one of the trainer's {self._count} processes died (exit status {status}); see {self._log}"
            f"{_suspicion(status)}"
        )


def _suspicion(status: int) -> str:
    """Of whom nobody has named."""
    return "; the system ends processes so where memory runs out" if status == -signal.SIGKILL else ""


def _here(config: DeepSpeedConfig, environment: Mapping[str, str]) -> list[str]:
    """What each process on this machine computes on: its place among what can be seen of the GPUs.

    Raises:
        CoevoError: there are not enough of them.
    """
    seen = environment.get("CUDA_VISIBLE_DEVICES") if config.device == "cuda" else None
    devices = seen.split(",") if seen else list(map(str, range(config.processes)))
    if len(devices) < config.processes:
        raise CoevoError(
            f"update.deepspeed.processes={config.processes}, but CUDA_VISIBLE_DEVICES={seen}: "
            "each process takes a GPU of its own"
        )
    return devices[: config.processes]


def _hosts(path: Path) -> dict[str, list[str]]:
    """What the processes on each machine compute on, the machine of process 0 first."""
    try:
        lines = [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError:
        raise CoevoError(
            f"update.deepspeed.hostfile={str(path)!r} is not there: name a file of NAME slots=N lines"
        ) from None
    hosts: dict[str, list[str]] = {}
    for line in filter(None, lines):
        found = re.fullmatch(r"([A-Za-z0-9][\w.@:-]*)\s+slots=([1-9]\d*)", line)
        if found is None or found[1] in hosts:
            raise CoevoError(f"{path}: {line!r} is not a machine of its own; write NAME slots=N, each name once")
        hosts[found[1]] = list(map(str, range(int(found[2]))))
    if not hosts:
        raise CoevoError(f"{path}: it names no machine; write NAME slots=N lines")
    return hosts


def _launcher(nodes: dict[str, list[str]], number: int, meeting: Path) -> list[str]:
    """DeepSpeed's launcher of the processes on one machine."""
    options = {
        "world_info": base64.urlsafe_b64encode(json.dumps(nodes).encode()).decode(),
        "node_rank": str(number),
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


def _environment(config: DeepSpeedConfig) -> dict[str, str]:
    """What decides where processes import from, whatever the working directory holds, and where they compute."""
    decided = {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONSAFEPATH": "1",
        "DS_ACCELERATOR": config.device,
    }
    if config.device == "cuda":
        decided["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # repeatable sums
    if config.hostfile is None and sys.platform == "linux":
        decided["GLOO_SOCKET_IFNAME"] = "lo"  # the machine's name need not lead to it
    return decided


def _by_ssh(host: str, command: list[str], environment: dict[str, str]) -> list[str]:
    forwarded = {name: value for name, value in os.environ.items() if name.startswith(FORWARDED)}
    variables = [f"{name}={value}" for name, value in (forwarded | environment).items()]
    return ["ssh", "-o", "BatchMode=yes", host, shlex.join(["exec", "env", *variables, *command])]


def _spawn(command: list[str], environment: dict[str, str], log: Path, first: bool) -> subprocess.Popen[bytes]:
    with log.open("ab") as errors:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if first else errors,
            stderr=errors,
            bufsize=0,
            env=os.environ | environment,
            start_new_session=True,  # Ctrl-C is for the parent, which may want to finish what it does
        )
