"""Weights and the optimizer's state as safetensors; DeepSpeed's own checkpoints are pickles.

Everything is kept parameter by parameter in full, however ZeRO partitions it among processes, so any number of
processes and any stage can read it. Process 0 writes; all processes must take part.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from deepspeed.runtime.zero.partition_parameters import GatheredParameters
from deepspeed.runtime.zero.utils import is_zero_param
from deepspeed.utils import (
    safe_get_full_fp32_param,
    safe_get_full_optimizer_state,
    safe_set_full_fp32_param,
    safe_set_full_optimizer_state,
    safe_set_local_fp32_param,
    safe_set_local_optimizer_state,
)
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn.functional import pad

from coevo.models.policy import policy as policies
from coevo.models.policy.language_model import Policy
from coevo.models.trainer.deepspeed_engine import masters, trainable
from coevo.models.trainer.packed_forward import bare
from coevo.models.trainer.ranks import broadcast, rank, shared, world
from coevo.models.weights.tensor_file import Spec, in_file_order, write_tensors
from coevo.utilities.errors import CoevoError

STATE = "state.safetensors"
"""File of the optimizer in its directory: ``step``, and ``<part>.<parameter>`` for each part and parameter."""
MOMENTS = ("exp_avg", "exp_avg_sq")
MASTER = "master"
"""Part that holds a half-precision parameter in float32."""


def whole(parameter: Tensor) -> Tensor:
    """Whole value of a parameter, for process 0 only: in the others it may be a part."""
    if not is_zero_param(parameter):
        return parameter.detach()
    with GatheredParameters([parameter]):
        return parameter.detach().cpu().clone() if rank() == 0 else parameter.detach()


def load_policy(directory: Path) -> Policy:
    """Load a policy; of several processes, process 0 reads the weights and the others receive them.

    Raises:
        CoevoError: as ``coevo.models.policy.policy.load``.
    """
    policy = policies.load(directory) if rank() == 0 else policies.outline(directory)
    if world() > 1:
        _receive(policy.model)
    return policy


def _receive(model: Any) -> None:
    """Broadcast all tensors of a model; in processes other than 0 they have no values and perhaps other types."""
    types = {name: (value.dtype, value.requires_grad) for name, value in _tensors(model).items()}
    types = shared(types if rank() == 0 else None)
    if rank() > 0:
        model.to_empty(device="cpu")
        bare(model).tie_weights()  # they were made apart
    held = _tensors(model)
    if held.keys() != types.keys():
        raise CoevoError(f"processes of the trainer have different tensors: {sorted(held.keys() ^ types.keys())[:3]}")
    for name, value in held.items():
        kind, trained = types[name]
        if value.dtype != kind:
            value.data = torch.empty(value.shape, dtype=kind)
        value.requires_grad_(trained)
        copy = value.detach().contiguous()
        broadcast(copy.view(-1).view(torch.uint8))  # no backend knows every type
        if rank() > 0:
            value.data.copy_(copy)


def _tensors(model: nn.Module) -> dict[str, Tensor]:
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def save_trained(module: nn.Module, path: Path) -> None:
    """Write the trained parameters of a module, one by one."""
    parameters = trainable(module)
    specs = {name: Spec(value.dtype, _shape(value)) for name, value in parameters.items()}
    _write(path, specs, (whole(parameters[name]) for name in in_file_order(specs)))


def save_optimizer(engine: Any, directory: Path) -> None:
    """Write the state of a DeepSpeed engine's optimizer, one part of one parameter at a time."""
    parameters, specs = trainable(engine.module), _specs(engine)
    values = (_part(engine, parameters, name) for name in in_file_order(specs))
    _write(directory / STATE, specs, values)


def _write(path: Path, specs: Mapping[str, Spec], values: Iterator[Tensor]) -> None:
    if rank() == 0:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_tensors(path, specs, values)
    else:
        deque(values, maxlen=0)  # takes part in gathering them


def load_optimizer(engine: Any, directory: Path) -> None:
    """Restore the output of ``save_optimizer``.

    Raises:
        CoevoError: it is not the state of this policy's optimizer.
    """
    parameters = trainable(engine.module)
    masters = {f"{MASTER}.{name}" for name, value in parameters.items() if value.dtype != torch.float32}
    moments = {f"{moment}.{name}" for moment in MOMENTS for name in parameters}
    with safe_open(directory / STATE, framework="pt") as saved:  # maps the file: each process reads its parts
        names = set(saved.keys())
        if names not in (masters, masters | moments | {"step"}):
            raise CoevoError(f"{directory / STATE}: not the state of an optimizer of this policy; load its own")
        if "step" in names:
            _prepare(engine, saved.get_tensor("step"))
        for key in sorted(names - {"step"}):
            part, _, name = key.partition(".")
            if part == MASTER:
                _set_master(parameters[name], saved.get_tensor(key))
            else:
                _set_moment(engine, parameters[name], part, saved.get_tensor(key))


def _specs(engine: Any) -> dict[str, Spec]:
    """Stored parts of an optimizer, by their names in the file."""
    parameters = trainable(engine.module)
    steps = [state["step"] for state in engine.basic_optimizer.state.values()]
    parts = {f"{moment}.{name}": name for moment in MOMENTS for name in parameters} if steps else {}
    parts |= {f"{MASTER}.{name}": name for name, value in parameters.items() if value.dtype != torch.float32}
    specs = {part: Spec(torch.float32, _shape(parameters[name])) for part, name in parts.items()}
    return specs | ({"step": Spec(steps[0].dtype, ())} if steps else {})


def _part(engine: Any, parameters: Mapping[str, nn.Parameter], name: str) -> Tensor:
    part, _, of = name.partition(".")
    if part == MASTER:
        return safe_get_full_fp32_param(parameters[of])  # type: ignore[no-any-return]
    if part in MOMENTS:
        return _moment(engine, parameters[of], part)
    return next(state["step"] for state in engine.basic_optimizer.state.values())  # type: ignore[no-any-return]


def _shape(parameter: Tensor) -> tuple[int, ...]:
    """Shape of a parameter, which stage 3 has partitioned."""
    return tuple(getattr(parameter, "ds_shape", parameter.shape))


def _moment(engine: Any, parameter: nn.Parameter, moment: str) -> Tensor:
    if engine.zero_optimization_stage():
        return safe_get_full_optimizer_state(parameter, moment)  # type: ignore[no-any-return]
    state = engine.basic_optimizer.state.get(parameter)  # none before the first gradient
    return state[moment] if state else torch.zeros_like(parameter)


def _prepare(engine: Any, step: Tensor) -> None:
    """Give every partition of the optimizer the state that its first step would have created."""
    for partition in masters(engine):
        moments = {moment: torch.zeros_like(partition, requires_grad=False) for moment in MOMENTS}
        engine.basic_optimizer.state[partition] = {"step": step.clone(), **moments}
    # Stages 1 and 2 find the state by parameter, and DeepSpeed has no public way to link the two but a step.
    link = getattr(engine.optimizer, "_lazy_init_hp_params_optimizer_state", None)
    if link is not None:
        link()


def _set_moment(engine: Any, parameter: nn.Parameter, moment: str, value: Tensor) -> None:
    if is_zero_param(parameter):
        safe_set_local_optimizer_state(parameter, _share(parameter, value), moment)
    elif engine.zero_optimization_stage():
        safe_set_full_optimizer_state(parameter, value, moment)
    else:
        engine.basic_optimizer.state[parameter][moment].copy_(value)


def _set_master(parameter: nn.Parameter, value: Tensor) -> None:
    if is_zero_param(parameter):
        safe_set_local_fp32_param(parameter, _share(parameter, value))
    else:
        safe_set_full_fp32_param(parameter, value)


def _share(parameter: Any, value: Tensor) -> Tensor:
    """This process's part of a parameter that stage 3 partitions; the last part is padded."""
    size = parameter.ds_tensor.numel()
    return pad(value.flatten(), (0, size * world() - value.numel())).narrow(0, size * rank(), size)
