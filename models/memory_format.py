"""How weights lie in memory: by input, a matrix is multiplied with few rows up to twice as fast."""

import torch
from torch import nn

from models.policy import Policy


def lay_out(policy: Policy) -> None:
    """Have the float32 matrices of a policy in the layout that decoding on a CPU is fast with; their values stay.

    Embeddings are read by row and stay as they are, also where they are the output layer as well.
    """
    shared = policy.model.get_input_embeddings().weight
    for part in policy.model.modules():
        if isinstance(part, nn.Linear) and part.weight is not shared and part.weight.dtype == torch.float32:
            part.weight.data = part.weight.data.t().contiguous().t()
