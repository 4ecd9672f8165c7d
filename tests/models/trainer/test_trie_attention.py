"""Attention over a trie: what it keeps for the backward pass. That it is right is a matter of the whole forward."""

import gc
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

from coevo.models.trainer.trie_attention import CHECKPOINTED, attend, paths_of

PREFIX, OWN, LEAVES, WIDTH = 400, 4, 40, 32
NODES = PREFIX + LEAVES * OWN


def trie():
    """Leaves with a common prefix: their paths are 29 times as long as the trie."""
    own = np.arange(PREFIX, NODES).reshape(LEAVES, OWN)
    paths = [np.concatenate([np.arange(PREFIX), each]) for each in own]
    return paths_of(paths, np.array([0] + [PREFIX] * (LEAVES - 1)))


def inputs():
    torch.manual_seed(0)
    return [torch.randn(1, heads, NODES, WIDTH, requires_grad=True) for heads in (2, 1, 1)]


COPIES = LEAVES * PREFIX * 2 * WIDTH * 4
"""Bytes of keys and values of the prefix, once for each leaf."""


@contextmanager
def memory():
    """Bytes that are held afterwards and were not before."""
    held = []
    gc.collect()  # what other tests left would count as freed
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        yield held
    held.append(sum(each.self_cpu_memory_usage for each in seen.key_averages()))


def test_copies_of_a_shared_prefix_do_not_last_until_the_backward_pass():
    given, paths = inputs(), trie()
    with memory() as held:
        output, _ = attend(None, *given, None, trie=paths)
    assert held[0] < COPIES / 4
    assert output.shape == (1, NODES, 2, WIDTH)


def test_a_forward_without_a_backward_pass_leaves_nothing():
    given, paths = inputs(), trie()
    with memory() as held:
        attend(None, *given, None, trie=paths)
    assert held == [0]


def test_a_checkpointed_layer_keeps_nothing_until_its_backward_pass_and_leaves_nothing_after_it():
    given, paths = inputs(), trie()
    layer = nn.Module()
    setattr(layer, CHECKPOINTED, True)
    torch.autograd.grad(attend(layer, *given, None, trie=paths)[0].sum(), given)
    with memory() as held:
        output = checkpoint(lambda *of: attend(layer, *of, None, trie=paths)[0], *given, use_reentrant=False)
    assert held[0] < 1.1 * output.numel() * 4
    with memory() as held:
        found = torch.autograd.grad(output.sum(), given)
    assert held[0] <= sum(each.numel() for each in found) * 4


def test_gradients_are_those_of_one_node_at_a_time():
    given, paths = inputs(), trie()
    output, _ = attend(None, *given, None, trie=paths)
    weights = torch.randn_like(output)
    found = torch.autograd.grad((output * weights).sum(), given)
    query, key, value = given
    above = torch.zeros(NODES, NODES, dtype=torch.bool)
    for path in ([*range(PREFIX), *range(start, start + OWN)] for start in range(PREFIX, NODES, OWN)):
        above[np.ix_(path, path)] = True
    scores = (query @ key.transpose(2, 3) * WIDTH**-0.5).masked_fill(~above.tril(), -torch.inf)
    expected = torch.autograd.grad(((scores.softmax(-1) @ value).transpose(1, 2) * weights).sum(), given)
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-5)
