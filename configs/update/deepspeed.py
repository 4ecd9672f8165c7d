"""The trainer: settings of DeepSpeed, its processes, and the hostfile that names their machines."""

import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, ValidationInfo, model_validator

from coevo.configs.base import MAX_PROCESSES, MAX_SECONDS, MAX_TOKENS, Config, FromAnywhere
from coevo.configs.trust_settings import Trusted, is_stored
from coevo.utilities.errors import CoevoError

OWNED = {
    "optimizer": "update.optimizer",
    "scheduler": "update.optimizer",
    "gradient_clipping": "update.optimizer.clip",
    "train_batch_size": "update.deepspeed.tokens",
    "train_micro_batch_size_per_gpu": "update.deepspeed.tokens",
    "gradient_accumulation_steps": "update.deepspeed.tokens",
    "bf16": "policy.dtype",
    "fp16": "policy.dtype",
}
"""Sections of DeepSpeed's settings that this configuration decides, with the key that decides each."""

STAGES = (0, 1, 2, 3)
"""Stages of ZeRO."""
SOURCES = Path(__file__).resolve().parents[2]
"""Root of the source tree."""


class DeepSpeedConfig(Config):
    """Processes of the trainer. Fields for several processes or a GPU are stored only if they are set."""

    zero_stage: Literal[0, 1, 2, 3] = 1
    """ZeRO stage: 0 partitions nothing, 1 the optimizer, 2 also its gradients at every micro-batch, 3 also the weights.
    The stage of a section ``zero_optimization`` in ``settings`` takes precedence.
    """
    tokens: int = Field(default=16384, ge=1, le=MAX_TOKENS)
    """Maximum number of tokens per micro-batch, each counted once however many rows begin with it; gradients accumulate
    over a minibatch.
    """
    timeout: float = Field(default=600.0, gt=0, le=MAX_SECONDS)
    """Seconds that an update, a save or a start of the trainer may take before it is killed."""
    processes: int = Field(default=1, ge=1, le=MAX_PROCESSES, exclude_if=lambda count: count == 1)
    """Processes on this machine that share the update's micro-batches; steps are the same as with one process."""
    hostfile: Annotated[str | None, Trusted("starts programs on the machines in it, by ssh"), FromAnywhere] = Field(
        default=None, exclude_if=lambda path: path is None
    )
    """Hostfile of the machines that share them, one line ``NAME slots=PROCESSES`` per machine; replaces ``processes``.
    They are reached by ssh and see the same files under the same paths.
    """
    device: Literal["cpu", "cuda"] = Field(default="cpu", exclude_if=lambda device: device == "cpu")
    """Device of the processes; each uses its own GPU."""
    activation_checkpointing: bool = Field(default=False, exclude_if=lambda on: not on)
    """Recompute activations inside a layer in the backward pass: less memory, a third more work."""
    settings: Annotated[dict[str, JsonValue] | None, Trusted("lets DeepSpeed write files and reach servers")] = Field(
        default=None, exclude_if=lambda settings: settings is None
    )
    """Further settings in DeepSpeed's own JSON, or a file that contains them; the content of the file is stored."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, values: Any, info: ValidationInfo) -> Any:
        if not isinstance(values, dict) or values.get("settings") is None:
            return values
        named = values["settings"]
        if isinstance(named, str) and is_stored(info):  # otherwise a run from elsewhere could read any file
            raise ValueError("settings: a run stores the content, not a file's name: write the settings themselves")
        settings = _settings(named) if isinstance(named, str) else named
        zero = settings.get("zero_optimization", {}) if isinstance(settings, dict) else {}
        read = values | {"settings": settings}
        if isinstance(zero, dict) and zero and values.get("zero_stage", 0) in STAGES:  # otherwise it is refused below
            read["zero_stage"] = zero.get("stage", 0)
        return read

    @model_validator(mode="after")
    def _owned(self) -> Self:
        for name in self.settings or {}:
            if name in OWNED:
                raise ValueError(f"settings.{name} is not allowed there: leave it out and set {OWNED[name]}")
        if self.hostfile is not None and self.processes != 1:
            raise ValueError("processes is for one machine: leave it out and set slots=… in the hostfile")
        return self


def _settings(path: str) -> Any:
    """Content of a file; a relative path is looked up here, then beside the sources, where ``infra/deepspeed`` is."""
    file = next((each for each in (Path(path), SOURCES / path) if each.is_file()), Path(path))
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError:
        raise ValueError(f"settings={path!r} does not exist: name a file with DeepSpeed's settings in JSON") from None
    except ValueError as error:
        raise ValueError(f"settings={path!r} is not JSON: {error}") from None


def hosts_of(path: Path) -> dict[str, int]:
    """Number of processes on each machine of a hostfile, the machine of process 0 first.

    Raises:
        CoevoError: the file does not exist or names no machine, or one of its lines is malformed.
    """
    hosts: dict[str, int] = {}
    for line in filter(None, _uncommented(path)):
        found = re.fullmatch(r"([A-Za-z0-9][\w.@:-]*)\s+slots=([1-9]\d*)", line)
        if found is None or found[1] in hosts:
            raise CoevoError(f"{path}: {line!r} is malformed or repeated; write NAME slots=N, each name once")
        hosts[found[1]] = int(found[2])
    if not hosts:
        raise CoevoError(f"{path}: it names no machine; write NAME slots=N lines")
    return hosts


def _uncommented(path: Path) -> list[str]:
    """Lines of a hostfile, without comments."""
    try:
        return [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError:
        raise CoevoError(
            f"update.deepspeed.hostfile={str(path)!r} does not exist: name a file of NAME slots=N lines"
        ) from None
