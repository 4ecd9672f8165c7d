"""``coevo fsck`` of a run of many revisions: wall-clock of the command, the start of Python included."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.bench import Bench, BenchResult
from benchmarks.command import coevo
from coevo.configs.load.load import load_recipe
from coevo.configs.run_config import RunConfig
from coevo.lineage.lineage import Lineage
from coevo.lineage.status import RunStatus
from coevo.lineage.workspace import RunPaths
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.stats import Stats
from coevo.records.arrow import episodes_to_table
from coevo.records.entry import Entry, entry_id
from coevo.tasks.publish.mlflow.publication import Publication
from coevo.tasks.publish.mlflow.tracker import Tracker
from coevo.tasks.publish.mlflow.tracking_store import tracking_store

RECIPE = "homerules-coevo-rl"
REVISIONS, POLICY_BYTES, RETRIEVED, FIGURES = 200, 1_000_000, 16, 30
TARGET_SECONDS = 10.0


def run(bench: Bench) -> None:
    """Measure it where it is missing and print it."""
    result = bench.cell(f"{REVISIONS}-revisions", lambda: measure(bench))
    print(f"\ncoevo fsck of {REVISIONS} revisions: {result['seconds']:.1f} s (target {TARGET_SECONDS:.0f})")


def measure(bench: Bench) -> BenchResult:
    """Seconds of the command on a run made with the real stores, every revision of which changes the bank."""
    shutil.rmtree(bench.workspace.root, ignore_errors=True)
    build(bench, load_recipe(RECIPE, []))
    start, used = time.monotonic(), cpu_of_children()
    coevo(bench.workspace, "fsck")
    spent = {"seconds": time.monotonic() - start, "cpu_seconds": cpu_of_children() - used}
    return {**spent, "revisions": REVISIONS, "policy_bytes": POLICY_BYTES}


def cpu_of_children() -> float:
    """Seconds that ended child processes have computed: on a busy machine the wall-clock says little."""
    times = os.times()
    return times.children_user + times.children_system


def build(bench: Bench, config: RunConfig) -> None:
    """Commit and publish the run ``many``."""
    trackers: list[Tracker] = []

    def publish(made: Publication) -> None:
        if not trackers:
            origin = bench.workspace.run("many").created.read_text(encoding="utf-8").strip()
            trackers.append(Tracker(tracking_store(bench.workspace.root), "homerules", "many", origin))
        trackers[0].publish(made)

    paths = commit_revisions(bench, config, REVISIONS, publish)
    trackers[0].finish(RunStatus("finished"), 1.0)
    paths.published.write_text(f'{{"published": {REVISIONS - 1}}}\n', encoding="utf-8")


def commit_revisions(
    bench: Bench, config: RunConfig, count: int, committed: Callable[[Publication], object]
) -> RunPaths:
    """Commit so many revisions of the run ``many``, and call a function after each."""
    paths = bench.workspace.create("many", config)
    bank = Bank(paths.bank)
    with Lineage.open(paths.lineage, bench.workspace.cache) as lineage:
        for revision in range(count):
            bank.merge(_change(revision))
            manifest = lineage.commit(_stage(paths, revision), _state(config, bank, revision), _observed(paths, bank))
            committed(Publication(manifest, lineage.history.commit_hash(revision), bank.active()))
    return paths


def _change(revision: int) -> BankChange:
    lesson = _lesson(revision)
    seen = range(max(0, revision - RETRIEVED), revision + 1)
    counters = tuple(Stats(_lesson(n).id, revision, revision // 2, 0.5, revision) for n in seen)
    return BankChange(entries=(lesson,), stats=counters)


def _lesson(revision: int) -> Entry:
    text = f"lotus lesson {revision}"
    return Entry(entry_id("lotus", text), text, "mug", "go safe", "mug", "lotus", "train", (), revision, revision)


def _stage(paths: RunPaths, revision: int) -> dict[str, Path]:
    staged = {name: paths.staging / name for name in ("policy", "episodes")}
    for directory in staged.values():
        directory.mkdir(parents=True)
    weights = np.random.default_rng(revision).bytes(POLICY_BYTES)
    (staged["policy"] / "model.safetensors").write_bytes(weights)
    pq.write_table(episodes_to_table([]), staged["episodes"] / "episodes.parquet")
    return staged


def _state(config: RunConfig, bank: Bank, revision: int) -> dict[str, object]:
    return {
        "iteration": revision,
        "fired": revision,
        "config": config.model_dump(mode="json"),
        "config_hash": config.digest(),
        "code": "",
        "accepted_change": [],
        "tables": bank.hashes(),
        "panels": {},
        "outcomes": {},
        "metrics": {f"figure/{n}": revision / (n + 1) for n in range(FIGURES)},
    }


def _observed(paths: RunPaths, bank: Bank) -> dict[str, object]:
    return {"run": paths.name, "tables": bank.versions(), "metrics": {"cost/seconds/wall": 1.0}}
