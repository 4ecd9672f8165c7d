"""DeepSpeed: the engine that holds weights, gradients and the optimizer."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import deepspeed
import torch
from torch import Tensor, nn

from coevo.configs.update.update_config import DeepSpeedConfig, OptimizerConfig, UpdateConfig
from coevo.models.trainer import ranks
from coevo.models.trainer.packing import PACKINGS, Packed
from coevo.models.trainer.update_batch import Batch
from coevo.utilities.errors import CoevoError

Settings = dict[str, Any]

SAMPLED = 4096
"""Values per float32 tensor that show whether a step changed anything."""
MASTERS = ("single_partition_of_fp32_groups", "fp32_groups_flat_partition", "fp32_partitioned_groups_flat")
"""Attributes of DeepSpeed's optimizers that hold this process's part of the float32 weights, by ZeRO stage."""


def start(module: nn.Module, optimizer: OptimizerConfig, config: DeepSpeedConfig) -> Any:
    """Start a DeepSpeed engine for the trainable parameters of ``module``; in half precision they get float32 masters.

    Raises:
        CoevoError: their precision does not work with the ZeRO stage.
    """
    parameters = list(trainable(module).values())
    half = _half(module)
    if half and config.zero_stage == 0:
        raise CoevoError(
            "the policy is bfloat16, but update.deepspeed.zero_stage=0 keeps no float32 copy of its weights: "
            "set policy.dtype=float32, or zero_stage=1 or higher"
        )
    settings = _settings(config, half) | _optimizer(optimizer, 0.0 if config.zero_stage == 0 else optimizer.clip)
    engine = deepspeed.initialize(model=module, model_parameters=parameters, config=settings)[0]
    if config.zero_stage == 0:
        engine.norm = torch.zeros(())
        engine.basic_optimizer.register_step_pre_hook(lambda *_: _clip(engine, optimizer.clip))
    return engine


def freeze(module: nn.Module, config: DeepSpeedConfig) -> Any:
    """Start a DeepSpeed engine without optimizer that only forwards, its weights partitioned as by ZeRO stage 3."""
    half = _half(module)
    return deepspeed.initialize(model=module.requires_grad_(False), config=_settings(config, half))[0]


def _half(module: nn.Module) -> bool:
    """True if the trained parameters are in half precision; adapters over such a model are not."""
    return any(parameter.dtype == torch.bfloat16 for parameter in trainable(module).values())


def trainable(module: nn.Module) -> dict[str, nn.Parameter]:
    """Parameters that an update changes, by name; tied ones once."""
    return {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}


def masters(engine: Any) -> list[Tensor]:
    """Float32 weights that the optimizer steps: this process's partitions; at ZeRO stage 0, the parameters."""
    optimizer = engine.optimizer
    found = next((getattr(optimizer, name) for name in MASTERS if hasattr(optimizer, name)), None)
    return list(trainable(engine.module).values() if found is None else found)


def sampled(engine: Any) -> list[Tensor]:
    """Values spread over the float32 weights, as copies: a step may be too small for the half-precision ones."""
    flat = (part.detach().flatten() for part in masters(engine))
    return [part[:: max(1, len(part) // SAMPLED)].clone() for part in flat]


def backward(engine: Any, loss: Tensor) -> None:
    """Add the gradients of this process's part of the loss; DeepSpeed averages over processes, we sum."""
    engine.backward(loss * ranks.world() if ranks.world() > 1 else loss)


def step(engine: Any) -> float:
    """Clip the accumulated gradients and step; return their norm before clipping."""
    engine.step()
    reported = engine.get_global_grad_norm()
    return float(engine.norm if reported is None else reported)  # stage 0 reports none


class Share:
    """This process's share of an engine's passes over a batch.

    Args:
        engine: DeepSpeed's, on the device that takes the rows.
        config: packing and memory budget.
    """

    def __init__(self, engine: Any, config: UpdateConfig) -> None:
        self._engine = engine
        self._packing = PACKINGS[config.packing]
        self._tokens = config.deepspeed.tokens

    def micro_batches(self, batch: Batch, rows: Sequence[int]) -> Iterator[tuple[list[int], bool]]:
        """Micro-batches of this process for a minibatch, see ``ranks.mine``."""
        return ranks.mine(ranks.rounds(partial(self._packing.cut, batch, rows), self._tokens))

    def packed(self, batch: Batch, rows: Sequence[int]) -> Packed:
        """Rows of a micro-batch on the engine's device."""
        return self._packing.pack(batch, rows).to(self._engine.device)

    @torch.no_grad()
    def forwarded(
        self, batch: Batch, forward: Callable[[Packed], Tensor], chosen: Sequence[int] | None = None
    ) -> Tensor:
        """Output of a forward for all or the chosen rows, which the processes share, [rows, longest].

        It is undefined after a row's end, and 0 in rows that are not chosen.
        """
        values = torch.zeros(batch.mask.shape)
        for rows, counts in self.micro_batches(batch, range(len(batch)) if chosen is None else chosen):
            found = forward(self.packed(batch, rows))
            if counts:
                values[rows, : found.shape[1]] = found.cpu()
        return ranks.summed(values)


def _clip(engine: Any, most: float) -> None:
    """Clip the gradients that stage 0 has just reduced; DeepSpeed would do the same, but not report the norm."""
    engine.norm = nn.utils.clip_grad_norm_(list(trainable(engine.module).values()), most)


def _optimizer(optimizer: OptimizerConfig, clip: float) -> Settings:
    adamw = {"lr": optimizer.lr, "betas": optimizer.betas, "weight_decay": optimizer.weight_decay, "torch_adam": True}
    return {"optimizer": {"type": "AdamW", "params": adamw}, "gradient_clipping": clip}


def _settings(config: DeepSpeedConfig, half: bool) -> Settings:
    given = dict(config.settings or {})
    precision = {"bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"}} if half else {}
    zero = {"zero_optimization": given.pop("zero_optimization", None) or {"stage": config.zero_stage}}
    unmanaged = {"train_micro_batch_size_per_gpu": 1, "managed_gradient_accumulation": False}
    return unmanaged | precision | zero | given
