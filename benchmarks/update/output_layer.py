"""The output layer and the losses alone, in chunks of the vocabulary and at once: seconds, and memory.

Hidden states are given, the layer is trained. Each way runs in a process of its own; its peak is the most memory that
the process has held beyond hidden states, weights and one gradient.
"""

import multiprocessing
import resource
import time

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.bench import Bench, BenchResult
from coevo.configs.update.loss import LossConfig
from coevo.models.losses.policy_loss import Completions, policy_loss
from coevo.models.losses.vocabulary import LogitScale, token_loss

TOKENS, HIDDEN, VOCABULARY, ROUNDS = 2048, 1024, 151_936, 2
TARGET_GIB, TARGET_RATIO = 0.6, 1.1
GIB = 2**30


def run(bench: Bench) -> None:
    """Measure what is missing and print it."""
    found = bench.cell("loss", measure)
    print(
        f"\noutput layer and losses of {TOKENS} tokens, hidden {HIDDEN}, vocabulary {VOCABULARY}, float32: "
        f"{found['chunks']['peak_gib']:.2f} GiB in chunks (target {TARGET_GIB}), "
        f"{found['whole']['peak_gib']:.2f} at once; {found['ratio']:.2f} times the seconds (target {TARGET_RATIO})"
    )


def measure() -> BenchResult:
    """Both ways in turn."""
    context = multiprocessing.get_context("spawn")
    found = {}
    for name in ("chunks", "whole"):
        with context.Pool(1) as pool:
            found[name] = pool.apply(_spent, (name,))
    return found | {"ratio": found["chunks"]["seconds"] / found["whole"]["seconds"]}


def _spent(name: str) -> BenchResult:
    """Fewest seconds of some rounds, and the peak."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    hidden = torch.randn(TOKENS, HIDDEN, requires_grad=True)
    weight = torch.randn(VOCABULARY, HIDDEN).mul_(0.02).requires_grad_()
    targets = torch.randint(VOCABULARY, (TOKENS,))
    _learn(name, hidden[:1], weight, targets[:1])  # holds the weights and one gradient
    before, seconds = _peak(), []
    for _ in range(ROUNDS):
        hidden.grad = weight.grad = None
        since = time.perf_counter()
        _learn(name, hidden, weight, targets)
        seconds.append(time.perf_counter() - since)
    return {"seconds": min(seconds), "peak_gib": (_peak() - before) / GIB}


def _learn(name: str, hidden: Tensor, weight: Tensor, targets: Tensor) -> None:
    """One forward and backward pass of the output layer and the losses."""
    if name == "chunks":
        loss, _, _ = token_loss(hidden, weight, None, targets, LogitScale(1.0), _loss)
    else:
        whole = torch.log_softmax(functional.linear(hidden, weight), dim=-1)
        source = whole.detach()
        loss = _loss(whole[torch.arange(len(targets)), targets], -(source.exp() * source).sum(-1))
    torch.autograd.backward(loss)


def _loss(logprobs: Tensor, entropy: Tensor) -> Tensor:
    """Loss of one row with these log-probs and entropies."""
    logprobs, entropy = logprobs[None], entropy[None]
    fixed, mask = logprobs.detach() - 0.1, torch.ones(logprobs.shape, dtype=torch.bool)
    weights = mask / mask.sum()
    batch = Completions(logprobs, fixed, fixed, fixed, entropy, torch.ones_like(fixed), mask, weights)
    return policy_loss(batch, LossConfig()).loss


def _peak() -> int:
    """Most bytes that the process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
