"""The frozen reference policy: the policy's module with other values or, if its weights are partitioned, a copy."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from coevo.configs.update.update_config import DeepSpeedConfig
from coevo.models.trainer import deepspeed_engine as deep
from coevo.models.trainer.checkpoint import load_policy
from coevo.models.trainer.packed_forward import PolicyForward
from coevo.models.trainer.packing import Packed

PackedForward = Callable[[Packed], tuple[Tensor, ...]]
"""Log-probs and entropies of packed completions, in the form of ``PolicyForward``."""


def load_reference(directory: Path, engine: Any, temperature: float, config: DeepSpeedConfig) -> PackedForward:
    """Load the policy in a directory, of the same architecture as the one that ``engine`` trains."""
    frozen = PolicyForward(load_policy(directory).model, temperature)
    if config.zero_stage == 3:
        return deep.freeze(frozen, config)  # type: ignore[no-any-return]
    own = deep.trainable(engine.module)
    values = {name: value.detach().to(own[name]) for name, value in deep.trainable(frozen).items()}
    return substituted(engine.module, values)


def substituted(module: nn.Module, values: Mapping[str, Tensor]) -> PackedForward:
    """Forward of ``module`` with these values in place of its own parameters."""
    return partial(_substituted, module, dict(values))


def _substituted(module: nn.Module, values: dict[str, Tensor], packed: Packed) -> tuple[Tensor, ...]:
    return torch.func.functional_call(module, values, (packed,))  # type: ignore[no-any-return]
