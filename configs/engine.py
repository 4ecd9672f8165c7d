"""The generating engine: the embedded one, or vLLM servers in an environment of their own."""

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from configs.base import FACTOR, FEW, ROWS, SECONDS, TOKENS, Config
from configs.trust import Trusted


class TransformersEngineConfig(Config):
    """Transformers in this process: nothing to start, every draw repeatable."""

    type: Literal["transformers"] = "transformers"
    """Which engine generates."""
    rows: int = Field(default=512, ge=1, le=ROWS)
    """Most sequences decoded at once."""
    threads: int = Field(default=1, ge=1, le=FEW)
    """CPU threads of one tensor operation, here and in the trainer; part of the run's identity."""


class VllmEngineConfig(Config):
    """vLLM servers, started, watched and stopped by the run, or given by URL (docs/engines.md)."""

    type: Literal["vllm"]
    """Which engine generates."""
    threads: int = Field(default=1, ge=1, le=FEW)
    """CPU threads of one tensor operation in the trainer, and of each server where it computes on a CPU."""
    urls: Annotated[tuple[str, ...], Trusted("sends prompts there and believes the answers")] = Field(
        default=(), max_length=FEW
    )
    """Servers that somebody else runs, as ``http://host:port``; without any, the run has its own."""
    replicas: int = Field(default=1, ge=1, le=FEW)
    """Servers that the run starts; each answers for some of the groups."""
    devices: tuple[str, ...] = Field(default=(), max_length=FEW)
    """GPUs of each server, as ``CUDA_VISIBLE_DEVICES`` names them (``0,1`` splits the model); none leaves them all."""
    python: Annotated[str, Trusted("starts it")] = ".venv-vllm/bin/python"
    """Interpreter of the environment that has vLLM; a relative one is looked for here, then beside the sources,
    the default beside the sources alone."""
    draws: Literal["keyed", "free"] = "keyed"
    """Whether each completion has a seed of its own, which repeats it and needs our extension in the server; or not."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Precision that the servers compute in."""
    tolerance: float | None = Field(default=None, gt=0, le=FACTOR)
    """How far their log-probs may lie from ours after each load; null is 1e-5 in float32 and 0.1 below it."""
    max_model_len: int | None = Field(default=None, ge=2, le=TOKENS)
    """Longest sequence in tokens; null is as long as the policy's."""
    gpu_memory_utilization: float = Field(default=0.9, gt=0, le=1)
    """Share of a GPU's memory that a server takes."""
    cpu_memory: int = Field(default=1, ge=1, le=2**20)
    """GiB for keys and values of a server that computes on a CPU."""
    rows: int = Field(default=256, ge=1, le=ROWS)
    """Most sequences that a server decodes at once."""
    timeout: float = Field(default=300.0, gt=0, le=SECONDS)
    """Seconds after which a server that has not answered a turn is taken to hang."""
    startup_timeout: float = Field(default=600.0, gt=0, le=SECONDS)
    """Seconds after which a server that has not become ready is given up."""
    restarts: int = Field(default=2, ge=0, le=1000)
    """How often in a row a turn is asked again of a server that was started anew."""

    @model_validator(mode="after")
    def _placed(self) -> Self:
        if self.urls and (self.replicas > 1 or self.devices):
            raise ValueError("urls names servers that run already: leave out replicas and devices, or urls")
        if self.devices and len(self.devices) != self.replicas:
            raise ValueError(
                f"devices has {len(self.devices)} entries for replicas={self.replicas}: give each server its own"
            )
        return self


def _kind(engine: Any) -> str:
    """Settings without a type are those of the embedded engine."""
    return str(engine.get("type", "transformers") if isinstance(engine, dict) else getattr(engine, "type", ""))


EngineConfig = Annotated[
    Annotated[TransformersEngineConfig, Tag("transformers")] | Annotated[VllmEngineConfig, Tag("vllm")],
    Discriminator(_kind, "no_such_engine", "choose transformers or vllm"),
]
