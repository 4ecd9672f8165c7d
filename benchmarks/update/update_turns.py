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
    place = bench.workspace.root
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    words = tuple(f"word{number}" for number in range(VOCABULARY - 6))
    save(build(MODEL, words, key("turns")), place / "policy")
    write_turns(place / "few.parquet", layout, VOCABULARY, (TURNS, TURNS), 1, 1)
    write_turns(place / "all.parquet", layout, VOCABULARY, (TURNS, TURNS), GROUPS, episodes)
    few, batch = read(place / "few.parquet"), read(place / "all.parquet")
    tried = {size: _timed(Trl(place, SETTINGS, few, size))[0] for size in SIZES}
    best = min(tried, key=tried.__getitem__)
    seconds, loss = _ours(place)
    theirs, their_loss = _timed(Trl(place, SETTINGS, batch, best))
    shutil.rmtree(place)
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


def _ours(place: Path) -> tuple[float, float]:
    """Seconds of the update by a trainer child, its check included, and the loss."""
    pq.write_table(SAMPLES.empty_table(), place / "none.parquet")
    start = StartingPoint(place / "policy", place / "policy")
    with Trainer(SETTINGS, start, temperature=1.0, threads=1, log=place / "log") as trainer:
        trainer.update(place / "none.parquet", key("turns"))
        since = time.perf_counter()
        metrics = trainer.update(place / "all.parquet", key("turns")).metrics
        return time.perf_counter() - since, metrics["loss"]


def _timed(contender: Trl) -> tuple[float, float]:
    """Seconds of an update, and its loss."""
    since = time.perf_counter()
    loss = contender.update(key("turns"))
    return time.perf_counter() - since, loss
