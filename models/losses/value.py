"""The critic's loss."""

import torch
from torch import Tensor


def value_loss(values: Tensor, old: Tensor, returns: Tensor, clip: float | None) -> Tensor:
    """Half the greater squared error of a value and of the value kept within ``clip`` of the old one.

    Args:
        values: of the state before each token, with gradient.
        old: what the critic said when the advantages were computed.
        returns: what it should have said.
        clip: how far from ``old`` a value counts; None for no limit.

    Returns:
        A loss a token, in the shape of ``values``.
    """
    free = (values - returns).square()
    if clip is None:
        return free / 2
    kept = torch.clamp(values, old - clip, old + clip)
    return torch.maximum(free, (kept - returns).square()) / 2
