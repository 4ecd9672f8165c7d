"""Aggregation of token losses to one number.

Every aggregation is linear in the token losses, so it is a table of weights computed once per minibatch; the losses of
its micro-batches of any size then simply add up.
"""

import torch
from torch import Tensor


def weights_of(mask: Tensor, episodes: Tensor, width: int, aggregation: str) -> Tensor:
    """Weight of each token's loss, so that the aggregate is the weighted sum, [rows, width of mask].

    Args:
        mask: true on real tokens; a row without any does not count.
        episodes: index of each row's episode, [rows].
        width: divisor of ``seq-mean-token-sum-norm``, beside the number of rows.
        aggregation: name as in ``LossConfig``.
    """
    lengths = mask.sum(1)
    rows = lengths > 0
    count = int(rows.sum())
    if aggregation == "token-mean":
        scale = torch.full(lengths.shape, 1 / max(int(lengths.sum()), 1))
    elif aggregation == "seq-mean-token-sum":
        scale = torch.full(lengths.shape, 1 / max(count, 1))
    elif aggregation == "seq-mean-token-mean":
        scale = 1 / (lengths.clamp(min=1) * max(count, 1))
    elif aggregation == "seq-mean-token-sum-norm":
        scale = torch.full(lengths.shape, 1 / (width * max(count, 1)))
    else:
        _, owner = torch.unique(episodes, return_inverse=True)
        steps = torch.bincount(owner, weights=rows.float())
        scale = 1 / (lengths.clamp(min=1) * steps.clamp(min=1)[owner] * max(int((steps > 0).sum()), 1))
    return mask * scale[:, None]
