"""Cost of keeping every revision: snapshots, differences and rollbacks of a large bank, and resuming a run."""

import contextlib
import io
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.bench import ROOT, Bench, BenchResult
from benchmarks.command import COMMAND
from benchmarks.running import large_run
from coevo.flows.cli import app
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.records.entry import Entry
from coevo.utilities.errors import CoevoError

ENTRIES = 100_000
REVISIONS = 200
REPEATS = 3
SLACK = 64 * 1024
FIRST_ROLLOUT = (
    "import os, sys, coevo.tasks.play.play; coevo.tasks.play.play.RolloutWorker._turn = lambda *_: os._exit(0); "
    "from coevo.flows.cli.app import main; main(sys.argv[1:])"
)
TARGETS = {
    "rollback_seconds": 2.0,
    "rollback_command_seconds": 2.0,
    "unchanged_snapshot_seconds": 0.05,
    "diff_command_seconds": 1.0,
    "resume_seconds": 15.0,
}


def run(bench: Bench) -> None:
    """Measure what is missing and print it."""
    figures = bench.cell(f"bank-{ENTRIES}", lambda: bank_figures(bench.workspace, ENTRIES))
    figures |= bench.cell("resume", lambda: resume_figures(bench.workspace))
    print(f"\na bank of {ENTRIES} entries, and a killed run")
    for name, target in TARGETS.items():
        print(f"  {name.replace('_', ' '):28}{figures[name]:8.3f} s (target {target})")
    histories = bench.cell(f"history-{ENTRIES}", lambda: history_figures(bench.workspace, ENTRIES, REVISIONS))
    for name in ("hot counters", "scattered counters", "new entries"):
        history = histories[name]
        print(f"  {name}: {history['revisions']} snapshots of {history['changed_bytes'] / 1024:.0f} KB add ", end="")
        print(f"{history['added_bytes_median'] / 1024:.0f} KB (target {history['allowed_bytes'] / 1024:.0f}), ", end="")
        print(f"reading the last takes {history['read_ratio']:.1f} times as long as the first")


def bank_figures(workspace: Workspace, entries: int) -> BenchResult:
    """Medians of repeated operations on a run with a bank of so many entries."""
    shutil.rmtree(workspace.root / "runs" / "large", ignore_errors=True)
    paths = large_run.build(workspace, "large", entries)
    bank = Bank(paths.bank)
    bank.hashes()
    some = bank.active()[:100]
    same, fresh = BankChange(tuple(some)), (BankChange(large_run.edited(some, 10 + n)) for n in range(REPEATS))
    targets = cycle(("3", "1"))
    diff = ("bank", "diff", "large@1", "large@2", "--json")
    return {
        "entries": entries,
        "unchanged_snapshot_seconds": seconds(lambda: snapshot(bank, same)),
        "changed_snapshot_seconds": seconds(lambda: snapshot(bank, next(fresh))),
        "diff_command_seconds": seconds(lambda: command(workspace, *diff)),
        "rollback_seconds": seconds(lambda: roll_back(paths, workspace)),
        "rollback_command_seconds": seconds(lambda: command(workspace, "rollback", "large", "--to", next(targets))),
    }


def snapshot(bank: Bank, change: BankChange) -> None:
    """The bank's part of a commit."""
    bank.merge(change)
    bank.hashes()
    bank.versions()


def roll_back(paths: RunPaths, workspace: Workspace) -> None:
    """Go back by a few revisions and to another content, as the library does it."""
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        head = lineage.history.head()
        assert head is not None
        lineage.rollback(1 if head.tables != lineage.history.manifest(1).tables else 3, Bank(paths.bank))


def history_figures(workspace: Workspace, entries: int, revisions: int) -> BenchResult:
    """Bytes that many snapshots add to a bank, for three kinds of change, and the time to read it afterwards."""
    lessons = [large_run.entry(number, 1) for number in range(entries)]
    draws = np.random.default_rng(0)
    most, some = lessons[: entries * 9 // 10], 400
    kinds: dict[str, Callable[[int], BankChange]] = {
        "hot counters": lambda n: BankChange(stats=large_run.counted(most[: 10 * some], n)),
        "scattered counters": lambda n: BankChange(stats=large_run.counted(_some(lessons, draws, some), n)),
        "new entries": lambda n: BankChange(tuple(large_run.entry(entries + 16 * n + i, n) for i in range(16))),
    }
    return {name: history(workspace.root / "history", lessons, change, revisions) for name, change in kinds.items()}


def history(path: Path, lessons: Sequence[Entry], change: Callable[[int], BankChange], revisions: int) -> BenchResult:
    """Bytes that each snapshot adds on disk beside those that it changes, and the seconds of a cold read."""
    shutil.rmtree(path, ignore_errors=True)
    bank = Bank(path)
    bank.merge(BankChange(tuple(lessons), large_run.counted(lessons, 0)))
    first, before = seconds(lambda: Bank(path).hashes()), size(path)
    added, spent, changed = [], [], 0
    for number in range(2, revisions + 2):
        made = change(number)
        changed = max(table.nbytes for table in made.tables().values())
        start = time.perf_counter()
        snapshot(bank, made)
        spent.append(time.perf_counter() - start)
        added.append(size(path) - before)
        before += added[-1]
    assert Bank(path).hashes() == bank.hashes()
    return {
        "revisions": revisions,
        "changed_bytes": changed,
        "allowed_bytes": 1.2 * changed + SLACK,
        "added_bytes_median": median(added),
        "added_bytes_largest": max(added),
        "snapshot_seconds_median": median(spent),
        "read_ratio": seconds(lambda: Bank(path).hashes()) / first,
    }


def resume_figures(workspace: Workspace) -> BenchResult:
    """Seconds from ``coevo resume`` of a killed run to its first new rollout; its servers are still up."""
    shutil.rmtree(workspace.root / "runs" / "killed", ignore_errors=True)
    settings = ("iterations=20", "evaluation.every=100", "--name", "killed", "--workspace", str(workspace.root))
    process = subprocess.Popen([*COMMAND, "run", large_run.RECIPE, *settings], cwd=ROOT)
    while process.poll() is None and _revisions(workspace) < 3:
        time.sleep(0.1)
    process.kill()
    process.wait()
    resume = [sys.executable, "-P", "-c", FIRST_ROLLOUT, "resume", "killed", "--workspace", str(workspace.root)]
    return {"resume_seconds": seconds(lambda: subprocess.run(resume, cwd=ROOT, check=True))}


def command(workspace: Workspace, *arguments: str) -> None:
    """A command in this process, so that neither the interpreter's start nor imports count after the first time."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            app.main([*arguments, "--workspace", str(workspace.root)])
    except SystemExit as ended:
        if ended.code != 0:
            raise CoevoError(f"`coevo {' '.join(arguments)}` ended with exit code {ended.code}") from None


def seconds(operation: Callable[[], object]) -> float:
    """Median seconds of a few repetitions."""
    spent = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        operation()
        spent.append(time.perf_counter() - start)
    return median(spent)


def size(path: Path) -> int:
    """Bytes of all files below a directory."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _revisions(workspace: Workspace) -> int:
    root = workspace.root / "runs" / "killed" / "lineage"
    return len(Lineage.open(root, workspace.cache).history.commits()) if root.is_dir() else 0


def _some(lessons: Sequence[Entry], draws: np.random.Generator, count: int) -> list[Entry]:
    return [lessons[number] for number in sorted(draws.choice(len(lessons), count, replace=False))]
