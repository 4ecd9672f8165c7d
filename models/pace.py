"""How long an iteration may take, roughly: matrix products at a usual share of a device's rate."""

from models.devices import Device
from models.shape import Shape

BUSY = 0.3
"""Share of a device's rate that training and prefill reach."""
STREAMED = 0.6
"""Share of its bandwidth that decoding reaches."""


def updating(shape: Shape, tokens: float, device: Device, passes: float, processes: int) -> float:
    """Seconds of an update over these tokens; ``passes`` counts forward passes, a backward pass being two of them."""
    return 2 * shape.parameters * tokens * passes / (BUSY * device.flops * processes)


def decoding(shape: Shape, rows: float, prompt: int, answer: int, device: Device, copies: int) -> float:
    """Seconds of one turn: prompts forwarded, then token after token for all rows at once.

    Args:
        shape: of the policy.
        rows: that play the turn, shared among the copies.
        prompt: tokens of a prompt.
        answer: tokens of an answer.
        device: what each copy computes on.
        copies: of the policy that generate side by side.
    """
    mine = rows / copies
    work = 2 * shape.parameters * mine / (BUSY * device.flops)
    read = shape.bytes * shape.parameters / (STREAMED * device.bandwidth)
    return prompt * work + answer * max(work, read)
