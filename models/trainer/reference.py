"""The frozen reference policy: the policy's module with other values or, where its weights are partitioned, a copy."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from configs.deepspeed import DeepSpeedConfig
from models import policy as policies
from models.trainer import engine as deep
from models.trainer.forward import SharedPrefix
from models.trainer.packing import Packed

Forward = Callable[[Packed], tuple[Tensor, Tensor]]
"""Log-probs and entropies of packed completions, as ``SharedPrefix`` gives them."""


def load_reference(directory: Path, engine: Any, temperature: float, config: DeepSpeedConfig) -> Forward:
    """The policy in a directory, of the same architecture as the one that ``engine`` trains."""
    frozen = SharedPrefix(policies.load(directory).model, temperature)
    if config.zero_stage == 3:
        return deep.freeze(frozen, config)  # type: ignore[no-any-return]
    own = deep.trainable(engine.module)
    values = {name: value.detach().to(own[name]) for name, value in deep.trainable(frozen).items()}
    return substituted(engine.module, values)


def substituted(module: nn.Module, values: Mapping[str, Tensor]) -> Forward:
    """The forward of ``module`` with these values in the place of its own parameters."""
    return partial(_substituted, module, dict(values))


def _substituted(module: nn.Module, values: dict[str, Tensor], packed: Packed) -> tuple[Tensor, Tensor]:
    return torch.func.functional_call(module, values, (packed,))  # type: ignore[no-any-return]
