"""The optimizer's state on its way to disk and back, as safetensors; DeepSpeed's own checkpoints are pickles."""

from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from configs.errors import CoevoError

STATE = "state.safetensors"
"""The optimizer's file in its directory."""


def save_optimizer(engine: Any, directory: Path) -> None:
    """Write the state of a DeepSpeed engine's optimizer, laid out as its ZeRO stage partitions it."""
    state = engine.basic_optimizer.state_dict()["state"]
    tensors = {f"{index}.{name}": value.contiguous() for index, part in state.items() for name, value in part.items()}
    directory.mkdir(parents=True, exist_ok=True)
    save_file(tensors, directory / STATE, metadata={"zero_stage": str(engine.zero_optimization_stage())})


def load_optimizer(engine: Any, directory: Path) -> None:
    """Restore exactly what ``save_optimizer`` wrote.

    Raises:
        CoevoError: it was written under another ZeRO stage, whose tensors are laid out differently.
    """
    stage = str(engine.zero_optimization_stage())
    state: dict[int, dict[str, Tensor]] = {}
    with safe_open(directory / STATE, framework="pt") as file:
        saved = file.metadata()["zero_stage"]
        if saved != stage:
            raise CoevoError(f"{directory}: written with update.deepspeed.zero_stage={saved}, not {stage}: set it back")
        for key in list(file.keys()):
            index, _, name = key.partition(".")
            state.setdefault(int(index), {})[name] = file.get_tensor(key)
    optimizer = engine.basic_optimizer
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
