"""DeepSpeed: the engine that holds weights, gradients and the optimizer."""

import os
from typing import Any

import deepspeed
import torch
from deepspeed.ops import __compatible_ops__
from torch import nn

from configs.errors import CoevoError
from configs.update import DeepSpeedConfig, OptimizerConfig

# Compiled at first use, which takes a minute and a compiler, and serves only several processes on one machine.
__compatible_ops__["deepspeed_shm_comm"] = False


def join() -> None:
    """Form a process group of this process alone, once in its life."""
    os.environ.setdefault("LOCAL_RANK", "0")
    store = torch.distributed.HashStore()  # type: ignore[attr-defined]  # needs no port that another run could hold
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    deepspeed.init_distributed("gloo", auto_mpi_discovery=False)


def start(module: nn.Module, optimizer: OptimizerConfig, config: DeepSpeedConfig) -> Any:
    """A DeepSpeed engine for the trainable parameters of ``module``.

    Raises:
        CoevoError: a parameter is not in float32.
    """
    parameters = trainable(module)
    for name, parameter in parameters.items():
        if parameter.dtype != torch.float32:
            raise CoevoError(f"{name} is {parameter.dtype}: the update computes in float32; set policy.dtype=float32")
    values = list(parameters.values())
    return deepspeed.initialize(model=module, model_parameters=values, config=_settings(optimizer, config))[0]


def trainable(module: nn.Module) -> dict[str, nn.Parameter]:
    """Parameters that an update changes, by name; tied ones once."""
    return {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}


def step(engine: Any) -> float:
    """Clip the accumulated gradients and step; returns their norm before clipping."""
    gradients = [p.grad for p in engine.module.parameters() if p.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    engine.step()
    reported = engine.get_global_grad_norm()  # None in stage 0; in stage 2 there are no local gradients to measure
    return float(norm if reported is None else reported)


def _settings(optimizer: OptimizerConfig, config: DeepSpeedConfig) -> dict[str, object]:
    adamw = {"lr": optimizer.lr, "betas": optimizer.betas, "weight_decay": optimizer.weight_decay, "torch_adam": True}
    return {
        "train_micro_batch_size_per_gpu": 1,
        "managed_gradient_accumulation": False,
        "gradient_clipping": optimizer.clip,
        "optimizer": {"type": "AdamW", "params": adamw},
        "zero_optimization": {"stage": config.zero_stage},
    }
