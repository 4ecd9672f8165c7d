"""Rollouts: number, length and generating engine."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, ValidationInfo, model_validator

from coevo.configs.base import (
    MAX_FACTOR,
    MAX_PROCESSES,
    MAX_ROWS,
    MAX_SECONDS,
    MAX_TOKENS,
    MAX_TURNS,
    Config,
    from_anywhere,
)
from coevo.configs.trust_settings import Trusted

DEFAULT_PYTHON = ".venv-vllm/bin/python"
"""Interpreter of vLLM beside the sources, wherever the working directory is."""


def _interpreter(path: str, info: ValidationInfo[Any]) -> str | None:
    return path if path == DEFAULT_PYTHON else from_anywhere(path, info)


class TransformersEngineConfig(Config):
    """Transformers in this process: no server to start, every draw repeatable."""

    type: Literal["transformers"] = "transformers"
    """Name of the engine."""
    rows: int = Field(default=512, ge=1, le=MAX_ROWS)
    """Maximum number of sequences decoded at once."""
    threads: int = Field(default=1, ge=1, le=MAX_PROCESSES)
    """CPU threads per tensor operation, here and in the trainer; part of the run's identity. A run that sets none gets
    its number when it is created: ``OMP_NUM_THREADS``, or with a pretrained policy the usable cores."""


class VllmEngineConfig(Config):
    """vLLM servers, started, watched and stopped by the run, or given by URL (docs/engines.md)."""

    type: Literal["vllm"]
    """Name of the engine."""
    threads: int = Field(default=1, ge=1, le=MAX_PROCESSES)
    """CPU threads per tensor operation in the trainer, and in each server that computes on a CPU. A run that sets none
    gets ``OMP_NUM_THREADS``, up to the usable cores, when it is created."""
    urls: Annotated[tuple[str, ...], Trusted("sends prompts there and trusts the answers")] = Field(
        default=(), max_length=MAX_PROCESSES
    )
    """Servers that run already, as ``http://host:port``; without any, the run starts its own."""
    replicas: int = Field(default=1, ge=1, le=MAX_PROCESSES)
    """Number of servers that the run starts; each generates for some of the groups."""
    devices: tuple[str, ...] = Field(default=(), max_length=MAX_PROCESSES)
    """GPUs of each server, as in ``CUDA_VISIBLE_DEVICES`` (``0,1`` splits the model); empty means all GPUs for each."""
    python: Annotated[str, Trusted("starts it"), AfterValidator(_interpreter)] = DEFAULT_PYTHON
    """Interpreter of the environment with vLLM. A relative path is looked up here, where it becomes absolute, then
    beside the sources, and the default beside the sources only.
    """
    sync: Literal["files", "gloo", "nccl", "ipc"] = "files"
    """Way of new weights to a server. ``files``: it reads them under the same path; ``gloo``: over TCP, to servers that
    see no file of the run; ``nccl``: between GPUs; ``ipc``: within a server's GPU. ``nccl`` and ``ipc`` are untried.
    """
    draws: Literal["keyed", "free"] = "keyed"
    """``keyed``: a seed per completion, repeatable, needs coevo's extension in the server; ``free``: no seeds."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Precision of the servers' computation."""
    tolerance: float | None = Field(default=None, gt=0, le=MAX_FACTOR)
    """Maximum mean difference to the trainer's log-probs after a load, in nats; null is 1e-4 in float32, else 0.1."""
    max_model_len: int | None = Field(default=None, ge=2, le=MAX_TOKENS)
    """Maximum sequence length in tokens; null takes the policy's."""
    gpu_memory_utilization: float = Field(default=0.9, gt=0, le=1)
    """Share of a GPU's memory that a server takes."""
    cpu_memory: int = Field(default=1, ge=1, le=2**20)
    """Memory in GiB for keys and values of a server that computes on a CPU."""
    rows: int = Field(default=256, ge=1, le=MAX_ROWS)
    """Maximum number of sequences that a server decodes at once."""
    timeout: float = Field(default=300.0, gt=0, le=MAX_SECONDS)
    """Seconds without an answer to a turn after which a server counts as hanging."""
    startup_timeout: float = Field(default=600.0, gt=0, le=MAX_SECONDS)
    """Seconds without becoming ready after which a server is given up."""
    restarts: int = Field(default=2, ge=0, le=1000)
    """Maximum number of consecutive server restarts for the same turn."""

    @model_validator(mode="after")
    def _placed(self) -> Self:
        if self.urls and (self.replicas > 1 or self.devices):
            raise ValueError("urls names servers that run already: set devices=[] and replicas=1, or leave urls out")
        if self.devices and len(self.devices) != self.replicas:
            raise ValueError(
                f"devices has {len(self.devices)} entries for replicas={self.replicas}: give each server its own"
            )
        if len({len(gpus.split(",")) for gpus in self.devices}) > 1:
            raise ValueError("devices splits the model over unequal numbers of GPUs: give each server as many")
        if self.sync == "ipc" and (self.urls or any("," in gpus for gpus in self.devices)):
            raise ValueError("sync=ipc shares the one GPU of a server that the run starts: choose gloo, nccl or files")
        return self


def gpus_of(engine: VllmEngineConfig) -> list[str]:
    """GPUs that the settings name for servers, each once, in order."""
    return list(dict.fromkeys(gpu.strip() for gpus in engine.devices for gpu in gpus.split(",")))


def indices_of(engine: VllmEngineConfig) -> set[int]:
    """Indices of the GPUs that the settings name for servers; a GPU that they name otherwise (UUID) has none."""
    return {int(gpu) for gpu in gpus_of(engine) if gpu.isdecimal()}


def width_of(engine: VllmEngineConfig) -> int:
    """Number of GPUs that each server's model is split over; 1 if the settings name none."""
    return max((len(gpus.split(",")) for gpus in engine.devices), default=1)


def _kind(engine: Any) -> str:
    """Kind of an engine's settings; without a type, the embedded engine."""
    return str(engine.get("type", "transformers") if isinstance(engine, dict) else getattr(engine, "type", ""))


EngineConfig = Annotated[
    Annotated[TransformersEngineConfig, Tag("transformers")] | Annotated[VllmEngineConfig, Tag("vllm")],
    Discriminator(_kind, "no_such_engine", "choose transformers or vllm"),
]


COLD = 0.1
"""Temperature up to which nearly every draw is the likeliest token."""


class SamplingConfig(Config):
    """Sampling of tokens."""

    temperature: float = Field(default=1.0, gt=0, le=1000)
    """Divisor of the logits, in the rollout and in the update."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus mass; an update needs 1 unless it corrects for less (``update.loss.importance_cap``)."""
    top_k: int = Field(default=0, ge=0, le=2**24)
    """Number of most likely tokens kept, 0 for all; an update needs 0 unless it corrects for more."""
    max_new_tokens: int = Field(default=12, ge=1, le=MAX_TOKENS)
    """Maximum length of one turn's answer in tokens."""


class GatewaySourceConfig(Config):
    """Episodes from the sessions of the run's gateway: agents with their own loop play, and their outcomes train."""

    outcomes: int = Field(default=64, ge=1, le=MAX_ROWS)
    """Sessions with an outcome that close an iteration."""
    staleness: int = Field(default=0, ge=0, le=1000)
    """Updates by which the policy that drew an answer may be older than the one that learns from it.

    Sessions with an older answer are left out. Above 0, ``update.loss.importance_cap`` corrects for the difference.
    """
    max_wait: float | None = Field(default=None, gt=0, le=1e6)
    """Minutes that an outcome waits for others: then the iteration closes with fewer; null waits for all of them."""


class RolloutConfig(Config):
    """Episodes of one iteration (CoEvo-RL Eq. 5)."""

    tasks: int = Field(default=16, ge=1, le=MAX_ROWS)
    """Tasks in a batch."""
    group_size: int = Field(default=8, ge=1, le=MAX_ROWS)
    """Rollouts per task under the same retrieved context (N)."""
    sampling: SamplingConfig = SamplingConfig()
    """Sampling of tokens."""
    engine: EngineConfig = TransformersEngineConfig()
    """Generating engine."""
    max_turns: int = Field(default=MAX_TURNS, ge=1, le=10_000)
    """Maximum number of turns per episode, in addition to the environment's own limit."""
    turns: int | None = Field(default=None, ge=1, le=10_000)
    """Turns per update in each of ``tasks`` parallel environments; null plays whole episodes.

    An unfinished episode is cut there for this update and continues in the next one (Context-lite 4.1).
    """
    pace: Literal["turn", "episode"] = Field(default="turn", exclude_if=lambda pace: pace == "turn")
    """``turn``: all episodes play a turn, then all play the next; ``episode``: none waits for another, which suits slow
    environments, and a server generates. Only with ``turn`` may a resumed run be bit-equal.
    """
    ahead: Literal[0, 1] = Field(default=0, exclude_if=lambda ahead: ahead == 0)
    """1: play the next batch during the update; 0: play it afterwards.

    With 1 its policy is one update old, which ``update.loss.importance_cap`` corrects for.
    """

    gateway: GatewaySourceConfig | None = Field(default=None, exclude_if=lambda gateway: gateway is None)
    """Learn from agents with their own loop, who ask the run's gateway; null plays ``tasks`` x ``group_size`` episodes.

    ``tasks`` and ``group_size`` are then the sizes of replays alone.
    """
    lost_limit: float = Field(default=0.5, ge=0, lt=1, exclude_if=lambda limit: limit == 0.5)
    """Share of an iteration's or a panel's episodes that the environment may lose; above it the run stops."""

    @model_validator(mode="after")
    def _at_once(self) -> Self:
        if self.tasks * self.group_size > MAX_ROWS:
            raise ValueError(
                f"tasks x group_size is {self.tasks * self.group_size}: at most {MAX_ROWS} episodes at a time"
            )
        return self
