"""Activation checkpointing of decoder layers.

transformers checkpoints layers in training mode only, in which dropout would make every importance ratio noise.
"""

from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from coevo.models.trainer.attention import CHECKPOINTED


def checkpoint_layers(model: nn.Module) -> None:
    """Keep the inputs of every decoder layer of ``model``; compute the rest again when needed."""
    for layer in model.modules():
        if isinstance(layer, GradientCheckpointingLayer):
            layer.forward = partial(checkpoint, layer.forward, use_reentrant=False, preserve_rng_state=False)
            for part in layer.modules():
                setattr(part, CHECKPOINTED, True)
