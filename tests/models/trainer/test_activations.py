"""Activation checkpointing: the same numbers for less memory, in a trie and with adapters."""

import copy

import pytest
import torch
from peft import LoraConfig, get_peft_model
from support.rows import TEMPERATURE, packed_as, ragged

from coevo.models.trainer.packed_forward import PolicyForward
from coevo.models.trainer.packing import pack_trie
from coevo.models.trainer.trie_attention import checkpoint_layers


def adapted(model):
    return get_peft_model(model, LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False))


def learned(model, packed):
    """Log-probs, gradients, and how many numbers were kept for them."""
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda it: kept.append(it.numel()) or it, lambda it: it):
        logprobs, _ = PolicyForward(model, TEMPERATURE)(packed)
    logprobs.sum().backward()
    return logprobs, [p.grad for p in model.parameters() if p.requires_grad], sum(kept)


@pytest.mark.parametrize("wrap", [lambda model: model, adapted])
def test_they_are_computed_again_and_not_kept(policy, wrap):
    torch.manual_seed(0)
    plain = wrap(copy.deepcopy(policy.model))
    saving = copy.deepcopy(plain)
    checkpoint_layers(saving)
    packed = packed_as(pack_trie, ragged(groups=4))
    logprobs, gradients, kept = learned(plain, packed)
    again, same, fewer = learned(saving, packed)
    assert torch.equal(logprobs, again)
    for one, other in zip(gradients, same, strict=True):
        torch.testing.assert_close(one, other)
    assert fewer < kept / 2


def test_nothing_is_kept_or_changed_where_nothing_is_learned(policy):
    saving = copy.deepcopy(policy.model)
    checkpoint_layers(saving)
    packed = packed_as(pack_trie, ragged())
    with torch.no_grad():
        assert torch.equal(PolicyForward(saving, 1.0)(packed)[0], PolicyForward(policy.model, 1.0)(packed)[0])
