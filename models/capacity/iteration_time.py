"""Rough duration of an iteration: matrix products at a usual share of a device's rate."""

from dataclasses import replace

from coevo.configs.rollout.rollout_config import EngineConfig, VllmEngineConfig
from coevo.models.capacity.devices import Device, Machine
from coevo.models.capacity.model_shape import ModelShape

BUSY = 0.3
"""Share of a device's rate that training and prefill reach."""
DISK = 0.5e9
"""Bytes per second that a disk writes, and a server reads of a policy."""
STREAMED = 0.6
"""Share of a device's bandwidth that decoding reaches."""


def updating(shape: ModelShape, tokens: float, device: Device, passes: float, processes: int) -> float:
    """Seconds of an update over these tokens; ``passes`` counts forward passes, a backward pass as two of them."""
    return 2 * shape.parameters * tokens * passes / (BUSY * device.flops * processes)


def storing(size: int) -> float:
    """Seconds of writing or reading so many bytes."""
    return size / DISK


def decoding(shape: ModelShape, rows: float, prompt: float, answer: int, device: Device, copies: int) -> float:
    """Seconds of one turn: a forward of the prompts, then one token after another for all rows at once.

    Args:
        shape: of the policy.
        rows: rows that play the turn, divided among the copies.
        prompt: tokens of a prompt that are computed, not held from an earlier turn.
        answer: tokens of an answer.
        device: device of each copy.
        copies: number of copies of the policy that generate in parallel.
    """
    mine = rows / copies
    work = 2 * shape.parameters * mine / (BUSY * device.flops)
    read = shape.bytes * shape.parameters / (STREAMED * device.bandwidth)
    return prompt * work + answer * max(work, read)


def generator(engine: EngineConfig, machine: Machine) -> tuple[Device, int]:
    """Device on which an engine generates, and the number of its copies there."""
    if not isinstance(engine, VllmEngineConfig):
        return on_host(engine, machine), 1
    return (machine.gpus[0] if machine.gpus else on_host(engine, machine)), len(engine.urls) or engine.replicas


def on_host(engine: EngineConfig, machine: Machine) -> Device:
    """The host with the threads that an engine and its trainer use there; its rate is that of one."""
    return replace(machine.host, flops=engine.threads * machine.host.flops)
