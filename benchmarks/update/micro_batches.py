"""An episode at the shape of Qwen3-0.6B beside a turn of it in TRL: forwards of reference and policy, and a backward.

Ours are the micro-batches of an episode of 20 turns: one if it is a conversation. TRL's holds the turn whose length is
nearest to the mean, and its seconds count once per turn: the ratio is scaled, not that of two whole updates. Weights
are random, in float32.
"""

import gc
import shutil
import time
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.bench import Bench, BenchResult
from benchmarks.gpu.cases import CASES, Case, build_policy
from benchmarks.update.padded_updates import Trl, joined, logprobs_of, padded
from benchmarks.update.turn_rows import write_turns
from benchmarks.update.update_turns import SETTINGS, TARGETS, TURNS
from coevo.models.losses.aggregation import weights_of
from coevo.models.losses.policy_loss import Completions, policy_loss
from coevo.models.policy.policy import load
from coevo.models.trainer.packed_forward import Objective, PolicyForward
from coevo.models.trainer.packing import pack_trie, tries
from coevo.models.trainer.update_batch import Batch, read
from coevo.utilities.errors import CoevoError

CASE = CASES["update-0.6b-full"]
TOKENS = 2048
"""Distinct tokens of our micro-batches, where an episode is not one conversation."""
CLOSE = 1e-3
"""Largest distance of log-probs, in nats, at which both have computed the same."""


def run(bench: Bench) -> None:
    """Measure what is missing and print it."""
    for layout, target in TARGETS.items():
        name = f"0.6b-{layout}".replace(" ", "-").replace(",", "")
        found = bench.cell(name, partial(measure, bench.workspace.root, layout))
        print(
            f"\n{layout}, shape of Qwen3-0.6B: {found['seconds']:.0f} s for an episode; TRL {found['trl_seconds']:.0f} "
            f"s for a turn of {found['row']} tokens: scaled to {found['turns']} turns, {found['ratio']:.1f} times as "
            f"fast (target {target:.0f})"
        )


def measure(directory: Path, layout: str, case: Case = CASE, turns: int = TURNS) -> BenchResult:
    """Seconds of both.

    Raises:
        CoevoError: their log-probs differ.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    build_policy(case, torch.float32, "cpu", directory / "policy")
    write_turns(directory / "episode.parquet", layout, case.shape.vocabulary, (turns, turns), 1, 1)
    batch = read(directory / "episode.parquet")
    lengths = [batch.length(row) for row in range(turns)]
    row = min(range(turns), key=lambda row: abs(lengths[row] - sum(lengths) / turns))
    trl_seconds, expected = _of_trl(directory, batch, row)
    gc.collect()  # its trainer holds itself, and with it two models and a gradient
    seconds, logprobs = _of_coevo(directory, batch)
    shutil.rmtree(directory)
    gap = float((logprobs[row, : len(expected)] - expected).abs().max())
    if not gap <= CLOSE:
        raise CoevoError(f"log-probs of both differ by {gap:.1e} nats: not the same update")
    return {
        "turns": turns,
        "row": lengths[row],
        "seconds": seconds,
        "trl_seconds": trl_seconds,
        "ratio": turns * trl_seconds / seconds,
        "gap": gap,
        "threads": 1,
    }


def _of_trl(directory: Path, batch: Batch, row: int) -> tuple[float, Tensor]:
    """Seconds of one row, and its log-probs."""
    contender, inputs = Trl(directory, SETTINGS, batch, 1), padded(batch, [row])
    with torch.no_grad():
        logprobs = logprobs_of(contender.model, *joined(inputs))[0]
    since = time.perf_counter()
    contender.backward([row], int(batch.mask[row].sum()), parts=1)
    return time.perf_counter() - since, logprobs


def _of_coevo(directory: Path, batch: Batch) -> tuple[float, Tensor]:
    """Seconds of all rows, and their log-probs, [rows, longest completion]."""
    policy, reference = (PolicyForward(load(directory / "policy").model, 1.0) for _ in range(2))
    weights = weights_of(batch.mask, batch.episodes, batch.mask.shape[1], SETTINGS.loss.aggregation)
    found, since = torch.zeros(batch.mask.shape), time.perf_counter()
    for rows in tries(batch, range(len(batch)), TOKENS):
        logprobs = _backward(policy, reference, batch, rows, weights)
        found[rows, : logprobs.shape[1]] = logprobs
    return time.perf_counter() - since, found


def _backward(
    policy: PolicyForward, reference: PolicyForward, batch: Batch, rows: list[int], weights: Tensor
) -> Tensor:
    """Add the gradients of a micro-batch, as the trainer does; return its log-probs."""
    width = max(len(batch.completions[row]) for row in rows)
    tensors = (batch.behaviour, batch.advantages, batch.mask, weights)
    old, advantages, mask, weight = (values[rows, :width] for values in tensors)
    trie = pack_trie(batch, rows)
    with torch.no_grad():
        frozen, _ = reference(trie)

    def objective(logprobs: Tensor, entropies: Tensor) -> Tensor:
        told = Completions(logprobs, old, old, frozen, entropies, advantages, mask, weight)
        return policy_loss(told, SETTINGS.loss).loss

    logprobs: Tensor
    logprobs, _, loss = policy(trie, Objective(objective, by_token=True))
    torch.autograd.backward(loss)
    return logprobs.detach()
