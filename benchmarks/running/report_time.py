"""``coevo report`` of a run of many revisions: wall-clock of the command, the start of Python included, and its bytes.

The run is made with the real stores: a batch of episodes a revision, each of them shown entries; lessons that enter,
are edited and leave; verdicts, evaluations, advantages, seconds, rollbacks.
"""

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.bench import Bench, BenchResult
from benchmarks.command import coevo
from benchmarks.running import large_run
from coevo.configs.load.load import load_recipe
from coevo.configs.run_config import RunConfig
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange, Judged
from coevo.memory.stats import tally
from coevo.records.arrow import episodes_to_table
from coevo.records.entry import Entry, Verdict
from coevo.records.episode import Completion, Episode, Turn
from coevo.records.task import Task

REVISIONS, EPISODES, TURNS, SHOWN, ADDED, TASKS = 200, 128, 6, 3, 4, 192
RUN = "many"
PANELS = ("seen-houses", "no-bank", "other-facts")
STAGES = (
    "rollout",
    "gate episodes",
    "advantage",
    "update",
    "update statistics",
    "write candidates",
    "judge",
    "admit",
    "commit",
)
TARGET_SECONDS, TARGET_BYTES = 5.0, 5_000_000


def run(bench: Bench) -> None:
    """Measure it where it is missing and print it."""
    found = bench.cell(f"{REVISIONS}-revisions", lambda: measure(bench.workspace, REVISIONS, EPISODES))
    print(
        f"\ncoevo report of {REVISIONS} revisions: {found['seconds']:.1f} s, {found['cpu_seconds']:.1f} s of processor "
        f"time (target {TARGET_SECONDS:.0f}), {found['bytes'] / 1e6:.2f} MB (target {TARGET_BYTES / 1e6:.0f})"
    )


def measure(workspace: Workspace, revisions: int, episodes: int) -> BenchResult:
    """Seconds of the command and bytes of the file."""
    paths = _built(workspace, revisions) or build(workspace, revisions, episodes)
    start, used = time.monotonic(), _cpu()
    coevo(workspace, "report", paths.name)
    spent = {"seconds": time.monotonic() - start, "cpu_seconds": _cpu() - used}
    size = (workspace.root / "reports" / f"{paths.name}.html").stat().st_size
    entries = len(Bank(paths.bank).entries())
    return {**spent, "bytes": size, "revisions": revisions, "episodes": episodes * revisions, "entries": entries}


def _built(workspace: Workspace, revisions: int) -> RunPaths | None:
    """The run, if an earlier start of the benchmark has made all of it."""
    paths = workspace.run(RUN)
    if not paths.lineage.is_dir():
        return None
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        return paths if len(lineage.history.commits()) == revisions else None


def build(workspace: Workspace, revisions: int, episodes: int) -> RunPaths:
    """Commit the run anew; every fortieth revision is a rollback by ten."""
    shutil.rmtree(workspace.root, ignore_errors=True)
    config = load_recipe(large_run.RECIPE, [])
    paths = workspace.create(RUN, config)
    bank, draws = Bank(paths.bank), np.random.default_rng(0)
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        for revision in range(revisions):
            if revision % 40 == 39:
                lineage.rollback(revision - 10, bank)
                continue
            played = list(_episodes(revision, bank.active(), draws, episodes))
            bank.merge(replace(_change(revision, bank.active()), stats=tally(bank.stats(), played)))
            observed = {"run": paths.name, "tables": bank.versions(), "metrics": _seconds(draws)}
            lineage.commit(_stage(paths, played), _state(config, bank, revision, draws), observed)
    return paths


def _cpu() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _episodes(revision: int, bank: list[Entry], draws: np.random.Generator, count: int) -> Iterator[Episode]:
    completion = Completion((5, 6, 7), (-0.1, -0.2, -0.3), "think lotus mug in safe act go safe", True)
    for number in range(count if revision else 0):
        task = Task(
            "homerules", ("put", "heat", "cool", "clean")[number % 4], f"task {number // 8}", "lotus", "train", {}
        )
        chosen: list[int] = draws.choice(len(bank), SHOWN, replace=False).tolist() if len(bank) >= SHOWN else []
        shown = tuple(bank[path].id for path in chosen)
        turn = Turn("at hall", tuple(range(40)), completion, "go safe", "see mug", 0.0, True, shown)
        name = f"{revision}/rollout-{revision - 1}/{task.id}/{number % 8}"
        yield Episode(name, task, revision, number % 8, (turn,) * TURNS, bool(draws.random() < 0.5), False)


def _change(revision: int, bank: list[Entry]) -> BankChange:
    if not revision:
        return BankChange()
    candidates = tuple(large_run.entry(number, revision) for number in range(revision * ADDED, (revision + 1) * ADDED))
    admitted = revision % 3 != 0
    names = tuple(entry.id for entry in candidates)
    verdict = Verdict(revision, names, admitted, 0.5, 0.4, 0.1 if admitted else -0.1, 0.05, 64, 0.0)
    changed = list(candidates) if admitted else []
    if bank and revision % 4 == 0:
        changed.append(replace(bank[0], retired=revision))
        changed.append(replace(bank[-1], strategy=f"{bank[-1].strategy} again", edited=revision))
    entries = {entry.id: entry for entry in changed}
    return BankChange(entries=tuple(entries.values()), judged=(Judged(verdict, candidates),))


def _state(config: RunConfig, bank: Bank, revision: int, draws: np.random.Generator) -> dict[str, object]:
    played = (
        {name: "".join(str(bit) for bit in draws.integers(0, 2, TASKS)) for name in PANELS} if revision % 5 == 0 else {}
    )
    success = {f"agent/success/{name}": outcomes.count("1") / TASKS for name, outcomes in played.items()}
    advantages = {
        f"policy/advantage/{name}": value
        for name, value in zip(("mean", "std", "min", "max"), (0.0, 0.9, -2.0, 2.0), strict=True)
    }
    trained = (
        {"agent/success/train": float(draws.random()), "agent/reward/train": float(draws.random()), **advantages}
        if revision
        else {}
    )
    return {
        "iteration": revision,
        "fired": revision,
        "config": config.model_dump(mode="json"),
        "config_hash": config.digest(),
        "code": "",
        "accepted_change": [],
        "tables": bank.hashes(),
        "panels": dict.fromkeys(played, "p" * 64),
        "outcomes": played,
        "metrics": {
            **success,
            **trained,
            "bank/size": float(bank.size()),
            "cost/episodes": 128.0,
            "cost/tokens": 1e4,
        },
    }


def _seconds(draws: np.random.Generator) -> dict[str, float]:
    spent = {f"cost/seconds/{stage}": float(draws.random()) for stage in STAGES}
    return {**spent, "cost/seconds/wall": sum(spent.values())}


def _stage(paths: RunPaths, played: list[Episode]) -> dict[str, Path]:
    staged = {name: paths.staging / name for name in ("policy", "episodes")}
    for directory in staged.values():
        directory.mkdir(parents=True)
    (staged["policy"] / "weights").write_text(f"{len(played)}", encoding="utf-8")
    pq.write_table(episodes_to_table(played), staged["episodes"] / "episodes.parquet")
    return staged
