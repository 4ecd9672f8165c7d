"""The embedded default at an earlier commit and here, in turn: seconds and held-out success over five seeds.

What was built for large models since must cost the embedded default neither time nor success.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

from benchmarks.bench import ROOT, Bench, BenchResult
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

COMMIT = "dbbb0b1"
"""The last one whose prompts were those of the embedded default only."""
RECIPE = "homerules-coevo-rl"
PANELS = ("seen-houses", "other-facts", "other-houses")
SEEDS = range(1, 6)
SIDES = ("before", "here")
LONGER, LOWER = 1.05, 0.02
"""Times as many seconds, and success less, that are allowed."""


def run(bench: Bench) -> None:
    """Measure what is missing and print the table."""
    report([bench.cell(f"seed-{seed}", partial(_pair, bench, seed)) for seed in SEEDS])


def report(pairs: Sequence[BenchResult]) -> None:
    """Print seconds and success of both sides, and the ratio and the difference that have a limit."""
    print(f"\n{'':14}{'before':>9}{'here':>9}")
    before, here = ({name: fmean(pair[side][name] for pair in pairs) for name in pairs[0][side]} for side in SIDES)
    for name, was in before.items():
        print(f"{name:14}{was:9.3f}{here[name]:9.3f}")
    for name in ("processor", "seconds"):
        print(f"{name}: {here[name] / before[name]:.3f} times (at most {LONGER})")
    print(f"{PANELS[0]}: {here[PANELS[0]] - before[PANELS[0]]:+.3f} (at least -{LOWER})")


def _pair(bench: Bench, seed: int) -> BenchResult:
    trees = {"before": _earlier(bench.workspace.root / COMMIT), "here": ROOT}
    order = SIDES if seed % 2 else SIDES[::-1]  # neither side is always the first
    return {side: _played(trees[side], Workspace(bench.workspace.root / side), seed) for side in order}


def _earlier(directory: Path) -> Path:
    """A clone at the earlier commit; it needs the history, which a shallow clone lacks."""
    if not directory.is_dir():
        subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", ROOT, directory], check=True)
    done = subprocess.run(["git", "checkout", "--quiet", COMMIT], cwd=directory, check=False)
    if done.returncode != 0:
        raise CoevoError(f"{ROOT} has no commit {COMMIT}: fetch the whole history, git fetch --unshallow")
    return directory


def _played(tree: Path, workspace: Workspace, seed: int) -> BenchResult:
    """A whole run in an empty workspace, warm start included; its Prefect server's processor seconds do not count."""
    shutil.rmtree(workspace.root, ignore_errors=True)
    command = [sys.executable, "-P", "-m", "coevo.flows"]
    environment = os.environ | {"PYTHONPATH": str(tree), "COEVO_WORKSPACE": str(workspace.root)}
    start, spent = time.monotonic(), _processor()
    line = [*command, "run", RECIPE, "--name", "run", f"seed={seed}"]
    done = subprocess.run(line, cwd=tree, env=environment, check=False)
    seconds, processor = time.monotonic() - start, _processor() - spent
    subprocess.run([*command, "down"], cwd=tree, env=environment, check=False)
    if done.returncode != 0:
        raise CoevoError(f"the run in {tree} ended with exit code {done.returncode}: mend what it says above")
    manifest = json.loads((workspace.existing("run").lineage / "manifest.json").read_text(encoding="utf-8"))
    success = {panel: manifest["state"]["metrics"][f"agent/success/{panel}"] for panel in PANELS}
    return {"processor": processor, "seconds": seconds, **success}


def _processor() -> float:
    """Processor seconds of this process's children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
