"""One vLLM server of the run: its command line and environment, its process, its log, and its end."""

import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from coevo.configs.rollout.rollout_config import DEFAULT_PYTHON, VllmEngineConfig, gpus_of, width_of
from coevo.models.weights import tensor_digest
from coevo.utilities import process_guard
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import Launch, ServerProcess, free_port, wait_ready

ROOT = Path(__file__).parents[4]
EXTENSION = Path(__file__).with_name("extension")
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Maximum adapter ranks that vLLM accepts."""
BLOCK = 32
"""Tokens per block of the prefix cache, the fewest that vLLM accepts on every device."""
QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "INFO"}
SAFE = {"PYTHONSAFEPATH": "1"}
"""Processes that a server starts do not import from the working directory either."""
OPEN = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}
"""Opens the endpoints that reload weights, adapters and the prefix cache, and those of sleep."""
EAGER = ["--enforce-eager", "--distributed-executor-backend", "uni"]
BATCH = 8192
"""Minimum number of tokens that a server on a CPU computes at once."""
EMBEDDED = {
    "TORCH_COMPILE_DISABLE": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}
"""On a CPU: no compilation, which takes minutes, and the engine in the server's own process."""


@dataclass(frozen=True)
class ServerSettings:
    """Start settings of a server.

    Attributes:
        model: directory of full weights, or of the base model of adapters.
        rank: of the adapters; 0 for none.
        length: maximum sequence length in tokens.
        sleeps: True if it will be sent to sleep.
    """

    model: str
    rank: int
    length: int
    sleeps: bool = False


def interpreter(config: VllmEngineConfig, section: str = "rollout.engine") -> Path:
    """Path of the Python with vLLM.

    Raises:
        CoevoError: it does not exist.
    """
    # Nobody chose the default, so the working directory must not decide where it is.
    default = config.python == DEFAULT_PYTHON
    places = (ROOT / config.python,) if default else (Path(config.python), ROOT / config.python)
    found = [path for path in places if path.is_file()]
    if not found:
        raise CoevoError(
            f"{section}.python = {config.python!r}: no such interpreter; build it with `make vllm-cpu` or "
            "`make vllm-gpu`, or name one that has vLLM"
        )
    return found[0].absolute()


def command(config: VllmEngineConfig, serving: ServerSettings) -> list[str]:
    """Command line without host and port."""
    line = [str(interpreter(config)), "-P", "-m", "vllm.entrypoints.openai.api_server"]
    line += ["--model", serving.model, "--skip-tokenizer-init"]
    line += ["--dtype", config.dtype, "--max-model-len", str(serving.length), "--max-num-seqs", str(config.rows)]
    line += ["--block-size", str(BLOCK), "--enable-prefix-caching", "--generation-config", "vllm", "--seed", "0"]
    # Log-probs as in the trainer: after the temperature, and of the distribution that was drawn from.
    line += ["--logprobs-mode", "processed_logprobs", "--disable-uvicorn-access-log"]
    if config.draws == "keyed":
        line += ["--middleware", "coevo_vllm.Seeds"]
    line += ["--middleware", "coevo_vllm.KeyGuard"]  # the last one is the outermost
    line += ["--worker-extension-cls", "coevo_worker.Digests", *_for_adapters(serving.rank)]
    if config.sync != "files":
        line += ["--weight-transfer-config", json.dumps({"backend": config.sync})]
    return line + (_on_gpus(config, serving) if torch.cuda.is_available() else _on_a_cpu(serving))


def _for_adapters(rank: int) -> list[str]:
    """Options of a server for adapters of this rank, or of a larger one that vLLM accepts; none for 0."""
    if not rank:
        return []
    accepted = next((each for each in RANKS if each >= rank), rank)
    return ["--enable-lora", "--max-loras", "1", "--max-lora-rank", str(accepted)]


def settings(config: VllmEngineConfig, replica: int, key: str) -> dict[str, str]:
    """Environment variables in addition to our own; the key is in no process's arguments."""
    common = {
        **QUIET,
        **OPEN,
        **SAFE,
        **_ours(key),
        "OMP_NUM_THREADS": str(config.threads),
        # Handles of GPU memory come pickled; only who has the key can send them.
        **({"VLLM_ALLOW_INSECURE_SERIALIZATION": "1"} if config.sync == "ipc" else {}),
    }
    if torch.cuda.is_available():
        return common | _devices(config, replica)
    return common | EMBEDDED | {"VLLM_CPU_KVCACHE_SPACE": str(config.cpu_memory)}


def sender_command(config: VllmEngineConfig) -> list[str]:
    """Command line of a process that sends weights."""
    line = [str(interpreter(config)), "-P", str(EXTENSION / "coevo_sender.py")]
    return [*line, config.sync, str(config.startup_timeout)]


def sender_settings(config: VllmEngineConfig, replica: int, key: str) -> dict[str, str]:
    """Environment variables of that process in addition to our own.

    Raises:
        CoevoError: it has no GPU to send from.
    """
    return {**QUIET, **SAFE, **_ours(key), **_devices_of_sender(config, replica)}


def _devices_of_sender(config: VllmEngineConfig, replica: int) -> dict[str, str]:
    """GPU to send from: with ``ipc`` that of the server, with ``nccl``, which takes no GPU twice, one that is left."""
    if config.sync == "gloo":
        return {}
    if config.sync == "ipc":
        if not torch.cuda.is_available():
            raise CoevoError("rollout.engine.sync=ipc sends within a GPU, and there is none here: set gloo or files")
        return _devices(config, replica)
    taken = set(gpus_of(config))
    left = [gpu for gpu in _visible() if gpu not in taken]
    if not left or not (config.urls or config.devices) or not all(map(str.isdecimal, taken)):
        raise CoevoError(
            "rollout.engine.sync=nccl sends from a GPU that no server here has: name the servers' GPUs in "
            "rollout.engine.devices by their numbers and leave one, or choose ipc, gloo or files"
        )
    return {"CUDA_VISIBLE_DEVICES": left[-1]}


def _visible() -> list[str]:
    """GPUs that this process may use, by their numbers on the machine."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [str(gpu) for gpu in range(torch.cuda.device_count())] if named is None else named.split(",")


def _ours(key: str) -> dict[str, str]:
    """Key and modules of ours in processes of vLLM's environment."""
    places = [str(EXTENSION), str(Path(tensor_digest.__file__).parent)]
    return {"VLLM_API_KEY": key, "PYTHONPATH": os.pathsep.join(places)}


def _on_a_cpu(serving: ServerSettings) -> list[str]:
    """Options for a CPU. A prompt is computed in one piece: vLLM's engine dies on a piece of a prompt with a seed."""
    return [*EAGER, "--no-enable-chunked-prefill", "--max-num-batched-tokens", str(max(BATCH, serving.length))]


def _on_gpus(config: VllmEngineConfig, serving: ServerSettings) -> list[str]:
    return [
        *("--gpu-memory-utilization", str(config.gpu_memory_utilization)),
        *("--tensor-parallel-size", str(width_of(config))),
        *(["--enable-sleep-mode"] if serving.sleeps else []),
    ]


def _devices(config: VllmEngineConfig, replica: int) -> dict[str, str]:
    return {"CUDA_VISIBLE_DEVICES": config.devices[replica]} if config.devices else {}


ELSEWHERE = ("Traceback", "See root cause above", "See stack trace")
"""Parts of lines that name an error of another line."""
PREFIX = re.compile(r"^\(\w+ pid=\d+\)\s*(?:[A-Z]+ [\d-]+ [\d:]+ \[[^\]]*\]\s*)?")
"""Process before a line of vLLM, and level, time and place of one of its log."""


class VllmServerError(CoevoError):
    """The server did not start; names its log."""


class VllmServer:
    """A command that serves on a free loopback port; it ends with this process, however that ends.

    Args:
        command: the command; ``--host`` and ``--port`` are appended.
        settings: environment variables in addition to our own.
        log: file that its output is appended to.
    """

    def __init__(self, command: Sequence[str], settings: Mapping[str, str], log: Path) -> None:
        self.log = log
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._logged = log.stat().st_size if log.exists() else 0
        log.parent.mkdir(parents=True, exist_ok=True)
        line = [sys.executable, "-IS", process_guard.__file__, *command, "--host", "127.0.0.1", "--port", str(port)]
        self._guard = ServerProcess(Launch(line, {**inherited(), **settings}, log, append=True, leash=True))

    @property
    def pid(self) -> int:
        """Process id of its guard, whose only child it is."""
        return self._guard.pid

    def runs(self) -> bool:
        """Return True if its process is alive, even if it does not answer."""
        return self._guard.runs()

    def wait(self, seconds: float, ready: Callable[[], bool]) -> None:
        """Wait until it is ready.

        Raises:
            VllmServerError: it ended before, or took longer and was stopped.
        """
        if wait_ready(ready, self.runs, seconds):
            return
        if not self.runs():
            said = last_error(self.log, self._logged)
            raise VllmServerError(f"the vLLM server ended before it was ready: {said}; see {self.log}")
        self.stop()
        raise VllmServerError(
            f"the vLLM server was not ready after rollout.engine.startup_timeout={seconds:g} s and was "
            f"stopped: raise the timeout, or see {self.log}"
        )

    def stop(self) -> None:
        """End it and all its children: SIGTERM, then SIGKILL."""
        self._guard.stop()


def last_error(log: Path, start: int) -> str:
    """Last line of a log, from a place in it on, that names an error and not another line; else its last line."""
    with log.open("rb") as file:
        file.seek(start)
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    named = [line for line in lines if not any(word in line for word in ELSEWHERE)]
    errors = [line for word in ("error:", "Error") for line in named if word in line]
    return " ".join(PREFIX.sub("", [*lines, *errors][-1]).split())[:300] if lines else "it wrote nothing"


def inherited() -> dict[str, str]:
    """Our environment without Prefect's part, which has the secret of its server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
