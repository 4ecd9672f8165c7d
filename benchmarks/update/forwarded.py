"""Positions that an update forwards, beside the distinct tokens of its rows, and the exactness of their log-probs.

A position counts with its padding, and each time that it is forwarded. Distinct tokens are the beginnings of all rows
of the batch, counted once. Log-probs are compared with one unpadded forward per row.
"""

import shutil
from functools import partial

import torch
from torch import Tensor

from benchmarks.bench import Bench, BenchResult
from benchmarks.update.turn_rows import LAYOUTS, write_turns
from coevo.configs.policy_config import ScratchPolicyConfig
from coevo.configs.update.update_config import DeepSpeedConfig
from coevo.models.policy.policy import build
from coevo.models.trainer.order import leaves
from coevo.models.trainer.packed_forward import PolicyForward
from coevo.models.trainer.packing import pack_rows, pack_trie, tries
from coevo.models.trainer.update_batch import Batch, read
from coevo.records.draws import key

MODEL = ScratchPolicyConfig(hidden_size=128, layers=4, heads=4, kv_heads=2, head_dim=32, intermediate_size=384)
WORDS = tuple(f"word{number}" for number in range(1000))
TURNS = (10, 30)
EVERY = 31
"""Every so many rows are compared."""
TARGETS = {"ratio": 1.1, "float32_max": 2e-5, "float32_mean": 1e-6, "bfloat16_mean": 0.02}


def run(bench: Bench) -> None:
    """Measure what is missing and print it."""
    for layout in LAYOUTS:
        found = bench.cell(layout.replace(" ", "-").replace(",", ""), partial(measure, bench, layout))
        print(f"\n{layout}: {found['rows']} rows, {found['distinct']} distinct tokens, {found['tokens']} in all")
        print("; ".join(f"{name} {found[name]:.3g} (target {target:g})" for name, target in TARGETS.items()))


@torch.no_grad()
def measure(bench: Bench, layout: str) -> BenchResult:
    """Positions, and differences of log-probs in nats."""
    directory = bench.workspace.root
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    write_turns(directory / "samples.parquet", layout, len(WORDS), TURNS)
    batch = read(directory / "samples.parquet")
    shutil.rmtree(directory)
    runs = tries(batch, range(len(batch)), DeepSpeedConfig().tokens)
    forwarded = sum(pack_trie(batch, run).ids.numel() for run in runs)
    distinct = leaves(batch.order, range(len(batch))).tokens
    model = build(MODEL, WORDS, key("forwarded")).model
    exact = _gaps(PolicyForward(model, 1.0), batch, runs)
    half = _gaps(PolicyForward(model.bfloat16(), 1.0), batch, runs)
    return {
        "rows": len(batch),
        "tokens": sum(batch.length(row) for row in range(len(batch))),
        "distinct": distinct,
        "forwarded": forwarded,
        "ratio": forwarded / distinct,
        "float32_max": float(exact.max()),
        "float32_mean": float(exact.mean()),
        "bfloat16_mean": float(half.mean()),
    }


def _gaps(forward: PolicyForward, batch: Batch, runs: list[list[int]]) -> Tensor:
    gaps = []
    for run in runs:
        packed, _ = forward(pack_trie(batch, run))
        for index in range(0, len(run), EVERY):
            single, _ = forward(pack_rows(batch, [run[index]]))
            gaps.append((packed[index, : single.shape[1]] - single[0]).abs())
    return torch.cat(gaps)
