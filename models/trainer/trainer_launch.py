"""Launch of the trainer's processes by the parent: an input pipe, an output pipe, and a common end.

One process is started directly, several by DeepSpeed's launcher: one launcher on this machine, or one on each machine
of a hostfile, by ssh. All processes hold the other end of the input pipe, and end with the parent, however that ends.
(DeepSpeed's own way to other machines, pdsh, does not pass the pipes on.)
"""

import base64
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from coevo.configs.update.update_config import DeepSpeedConfig, hosts_of
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import UTF8

CHILD = "coevo.models.trainer.child"
FAILED = "failed-{}"
"""Error file of process ``{}`` in the meeting place, written before it ends; process 0 reports to the parent."""
UNREACHED = 255
"""Exit status of ssh where the machine cannot be reached, refuses the login, or is lost."""
SSH_OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "-o", "ServerAliveInterval=30")
"""ssh asks nothing, and ends within two minutes of the loss of a machine."""
FORWARDED = ("NCCL_", "GLOO_")
"""Prefixes of the environment variables that other machines get from this one."""


class Launched:
    """The trainer's processes.

    Args:
        config: their place and number.
        log: file that their standard error is appended to.
        variables: of their environment, in addition to our own or overriding them.

    Raises:
        CoevoError: the hostfile does not exist, or one of its lines is malformed.
    """

    def __init__(self, config: DeepSpeedConfig, log: Path, variables: Mapping[str, str]) -> None:
        file = config.hostfile
        nodes = {"localhost": _here(config, os.environ | variables)} if file is None else _elsewhere(Path(file))
        self._count = sum(map(len, nodes.values()))
        self._machines = [] if file is None else list(nodes)
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
        """Process id of the process, or of the launcher of several."""
        return self._processes[0].pid

    @property
    def replies(self) -> int:
        """Descriptor of the output pipe."""
        assert self._processes[0].stdout is not None
        return self._processes[0].stdout.fileno()

    def write(self, line: bytes) -> None:
        """Write to the input pipe. Raises ``BrokenPipeError`` if the processes have ended."""
        assert self._processes[0].stdin is not None
        self._processes[0].stdin.write(line)

    def kill(self) -> None:
        """Kill them all at once."""
        for process in self._processes:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)  # each leads a session with all its children

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

    def ended(self) -> bool:
        """True if one of them has ended, here or on another machine; they work together or not at all."""
        return any(process.poll() is not None for process in self._processes)

    def last_words(self) -> str:
        """Reason of their end, in one line; call it only after an end."""
        number = next((at for at, process in enumerate(self._processes) if process.poll() is not None), 0)
        status = self._processes[number].wait()
        if self._meeting is None:
            return f"the trainer died (exit status {status}): {self._last_line()}; see {self._log}{_suspicion(status)}"
        told = sorted(self._meeting.glob(FAILED.format("*")), key=lambda path: path.stat().st_mtime_ns)
        if told:
            return told[0].read_text(encoding="utf-8")
        if self._machines and status == UNREACHED:
            return f"ssh to {self._machines[number]} failed: {self._last_line()}; see {self._log}"
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


def _elsewhere(path: Path) -> dict[str, list[str]]:
    """Devices of the processes on each machine of a hostfile."""
    return {name: list(map(str, range(count))) for name, count in hosts_of(path).items()}


def _launcher(nodes: dict[str, list[str]], number: int, meeting: Path) -> list[str]:
    """Command of DeepSpeed's launcher for the processes on one machine."""
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
    """Environment that decides from where processes import, in any working directory, and where they compute."""
    decided = {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONSAFEPATH": "1",
        **UTF8,
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
    return ["ssh", *SSH_OPTIONS, host, shlex.join(["exec", "env", *variables, *command])]


def _spawn(command: list[str], environment: dict[str, str], log: Path, first: bool) -> subprocess.Popen[bytes]:
    with log.open("ab") as errors:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if first else errors,
            stderr=errors,
            bufsize=0,
            env=os.environ | environment,
            start_new_session=True,  # Ctrl-C goes to the parent, which may want to finish its work
        )
