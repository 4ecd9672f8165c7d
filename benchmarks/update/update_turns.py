"""An update on episodes of many turns beside TRL's GRPOTrainer, on the same samples.

Both have the same policy of the Qwen3 architecture in float32 on one thread, and take one optimizer step with the same
losses over all rows, as in ``update_peers``: so their losses agree. TRL pads each row on its own; the best of several
sizes of its micro-batches counts. Sizes are compared on a part of the rows, the best one then takes the whole step.
"""

import shutil
import time
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.bench import Bench, BenchResult
from benchmarks.update.padded_updates import Trl
from benchmarks.update.turn_rows import write_turns
from benchmarks.update.update_peers import check_same
from coevo.configs.policy_config import ScratchPolicyConfig
from coevo.configs.update.loss import LossConfig
from coevo.configs.update.update_config import OptimizerConfig, UpdateConfig
from coevo.models.policy.policy import build, save
from coevo.models.trainer.samples import SAMPLES
from coevo.models.trainer.trainer_client import StartingPoint, Trainer
from coevo.models.trainer.update_batch import read
from coevo.records.draws import key

MODEL = ScratchPolicyConfig(hidden_size=256, layers=8, heads=8, kv_heads=4, head_dim=32, intermediate_size=768)
VOCABULARY, TURNS, GROUPS, EPISODES = 8192, 20, 2, 8
SIZES = (1, 2, 4, 8)
TARGETS = {"conversation": 5.0, "one message, full history": 3.0}
SETTINGS = UpdateConfig(loss=LossConfig(kl_coefficient=0.03), optimizer=OptimizerConfig(lr=1e-4))


def run(bench: Bench) -> None:
    """Measure what is missing and print it."""
    for layout, target in TARGETS.items():
        found = bench.cell(layout.replace(" ", "-").replace(",", ""), partial(measure, bench, layout))
        print(
            f"\n{layout}: an update of {found['tokens']} tokens in {found['rows']} rows is {found['ratio']:.1f} times "
            f"as fast as TRL's in micro-batches of {found['best']} (target {target:.0f})"
        )


def measure(bench: Bench, layout: str, episodes: int = EPISODES) -> BenchResult:
    """Seconds of an update by each, after a first step on few rows."""
    directory = bench.workspace.root
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    words = tuple(f"word{number}" for number in range(VOCABULARY - 6))
    save(build(MODEL, words, key("turns")), directory / "policy")
    write_turns(directory / "few.parquet", layout, VOCABULARY, (TURNS, TURNS), 1, 1)
    write_turns(directory / "all.parquet", layout, VOCABULARY, (TURNS, TURNS), GROUPS, episodes)
    few, batch = read(directory / "few.parquet"), read(directory / "all.parquet")
    tried = {size: _timed(Trl(directory, SETTINGS, few, size))[0] for size in SIZES}
    best = min(tried, key=tried.__getitem__)
    seconds, loss = _ours(directory)
    theirs, their_loss = _timed(Trl(directory, SETTINGS, batch, best))
    shutil.rmtree(directory)
    check_same({"coevo": loss, "trl": their_loss})
    return {
        "rows": len(batch),
        "tokens": sum(batch.length(row) for row in range(len(batch))),
        "seconds": seconds,
        "trl_seconds": theirs,
        "trl_sizes": tried,
        "best": best,
        "ratio": theirs / seconds,
        "threads": 1,
    }


def _ours(directory: Path) -> tuple[float, float]:
    """Seconds of the update by a trainer child, its check included, and the loss."""
    pq.write_table(SAMPLES.empty_table(), directory / "none.parquet")
    start = StartingPoint(directory / "policy", directory / "policy")
    with Trainer(SETTINGS, start, temperature=1.0, threads=1, log=directory / "log") as trainer:
        trainer.update(directory / "none.parquet", key("turns"))
        since = time.perf_counter()
        metrics = trainer.update(directory / "all.parquet", key("turns")).metrics
        return time.perf_counter() - since, metrics["loss"]


def _timed(contender: Trl) -> tuple[float, float]:
    """Seconds of an update, and its loss."""
    since = time.perf_counter()
    loss = contender.update(key("turns"))
    return time.perf_counter() - since, loss
