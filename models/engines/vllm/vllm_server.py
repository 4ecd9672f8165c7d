"""One vLLM server of the run: its command line and environment, its process, its log, and its end."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from coevo.configs.rollout.rollout_config import DEFAULT_PYTHON, VllmEngineConfig, gpus_of, width_of
from coevo.models.weights import tensor_digest
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import HERE, Launch, Launcher, NotReadyError, Place, PlaceLostError, Starting, size_of

ROOT = Path(__file__).parents[4]
EXTENSION = Path(__file__).with_name("extension")
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Maximum adapter ranks that vLLM accepts."""
BLOCK = 32
"""Tokens per block of the prefix cache, the fewest that vLLM accepts on every device."""
QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "INFO"}
STATISTICS = {"VLLM_LOG_STATS_INTERVAL": "2"}
"""Seconds between two lines about running and waiting requests in a server's log; the default of ten misses a batch."""
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
        gpus: number of GPUs that a node gives it; None on this machine, where the settings name them.
    """

    model: str
    rank: int
    length: int
    sleeps: bool = False
    gpus: int | None = None

    @property
    def on_gpus(self) -> bool:
        """True if it computes on GPUs."""
        return torch.cuda.is_available() if self.gpus is None else self.gpus > 0


def interpreter(config: VllmEngineConfig, section: str = "rollout.engine", here: bool = True) -> Path:
    """Path of the Python with vLLM.

    Raises:
        CoevoError: it does not exist, and has to be ``here``.
    """
    # Nobody chose the default, so the working directory must not decide where it is.
    default = config.python == DEFAULT_PYTHON
    places = (ROOT / config.python,) if default else (Path(config.python), ROOT / config.python)
    found = [path for path in places if path.is_file() or not here]
    if not found:
        raise CoevoError(
            f"{section}.python = {config.python!r}: no such interpreter; build it with `make vllm-cpu` or "
            "`make vllm-gpu`, or name one that has vLLM"
        )
    return found[0].absolute()


def command(config: VllmEngineConfig, serving: ServerSettings) -> list[str]:
    """Command line without host and port."""
    python = interpreter(config, here=serving.gpus is None)
    line = [str(python), "-P", "-m", "vllm.entrypoints.openai.api_server"]
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
    return line + (_on_gpus(config, serving) if serving.on_gpus else _on_a_cpu(serving))


def _for_adapters(rank: int) -> list[str]:
    """Options of a server for adapters of this rank, or of a larger one that vLLM accepts; none for 0."""
    if not rank:
        return []
    accepted = next((each for each in RANKS if each >= rank), rank)
    return ["--enable-lora", "--max-loras", "1", "--max-lora-rank", str(accepted)]


def settings(config: VllmEngineConfig, replica: int, key: str, on_gpus: bool) -> dict[str, str]:
    """Environment variables in addition to its place's; the key is in no process's arguments."""
    common = {
        **QUIET,
        **STATISTICS,
        **OPEN,
        **SAFE,
        **_ours(key),
        "OMP_NUM_THREADS": str(config.threads),
        # Handles of GPU memory come pickled; only who has the key can send them.
        **({"VLLM_ALLOW_INSECURE_SERIALIZATION": "1"} if config.sync == "ipc" else {}),
    }
    if on_gpus:
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
        *("--tensor-parallel-size", str(serving.gpus or width_of(config))),
        *(["--enable-sleep-mode"] if serving.sleeps else []),
    ]


def _devices(config: VllmEngineConfig, replica: int) -> dict[str, str]:
    return {"CUDA_VISIBLE_DEVICES": config.devices[replica]} if config.devices else {}


class VllmServerError(CoevoError):
    """The server did not start; names its log."""


class VllmServer:
    """A server in a place; it ends with this process, however that ends, and with its place.

    Args:
        command: the command; ``--host`` and ``--port`` are appended.
        variables: environment variables in addition to those of its place, without Prefect's, which have a secret.
        log: file that its output is appended to.
        launcher: source of its place, and the way of files to it.
        place: where it runs; ended with it.
    """

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        log: Path,
        launcher: Launcher = HERE,
        place: Place | None = None,
    ) -> None:
        self.log, self._launcher, self._place = log, launcher, place or Place()
        self._brought: dict[Path, str] = {}
        line, written = [*command, "--host", "{host}", "--port", "{port}"], size_of(log)
        launch = Launch(line, variables, log, append=True, guard="leash", withheld=("PREFECT_",), mark=log.stem)
        self._process = self._place.start(launch)
        self._starting = Starting(self._process, log, written, "rollout.engine.startup_timeout")
        self.url = f"http://{self._process.address}"

    @property
    def pid(self) -> int:
        """Process id of its guard, whose only child it is."""
        return self._process.pid

    def runs(self) -> bool:
        """Return True if its process is alive, even if it does not answer."""
        return self._process.runs()

    def wait(self, seconds: float, ready: Callable[[], bool]) -> None:
        """Wait until it is ready.

        Raises:
            VllmServerError: it ended before, or took longer and was stopped.
            PlaceLostError: its place was lost before.
        """
        try:
            self._starting.wait(ready, seconds)
        except NotReadyError as error:
            if self._process.lost:
                raise PlaceLostError(f"the vLLM server {error}") from None
            raise VllmServerError(f"the vLLM server {error}") from None

    def bring(self, directory: Path) -> Path:
        """Directory of weights as the server finds it; those before are removed from its place."""
        if directory not in self._brought:
            former, self._brought = self._brought, {directory: self._launcher.send(directory, [self._place])}
            for name in former.values():
                self._place.forget(name)
        return self._place.folder / self._brought[directory]

    def stop(self) -> None:
        """End it and all its children: SIGTERM, then SIGKILL."""
        self._process.stop()
        self._place.end()
