"""The first run on a machine: wall-clock and memory of ``coevo run`` in an empty workspace."""

import shutil
import time

import psutil

from benchmarks.bench import ROOT, Bench, BenchResult
from benchmarks.command import COMMAND, coevo
from coevo.utilities.errors import CoevoError

RECIPE = "homerules-coevo-rl"
SAMPLE_SECONDS = 0.25
TARGET_SECONDS, TARGET_BYTES = 360.0, 3e9


def run(bench: Bench) -> None:
    """Measure it where it is missing and print it."""
    result = bench.cell("coevo-rl", lambda: measure(bench))
    print(
        f"\ncoevo run {RECIPE} in an empty workspace: {result['seconds']:.0f} s (target {TARGET_SECONDS:.0f}), ", end=""
    )
    print(f"at most {result['peak_bytes'] / 1e9:.2f} GB resident (target {TARGET_BYTES / 1e9:.0f})")


def measure(bench: Bench, settings: tuple[str, ...] = ()) -> BenchResult:
    """Seconds and peak resident bytes of the command with all that it starts; shared pages count in each process.

    Raises:
        CoevoError: the run failed.
    """
    shutil.rmtree(bench.workspace.root, ignore_errors=True)
    start, peak = time.monotonic(), 0
    process = psutil.Popen([*COMMAND, "run", RECIPE, *settings, "--workspace", str(bench.workspace.root)], cwd=ROOT)
    while process.poll() is None:
        peak = max(peak, resident(process))
        time.sleep(SAMPLE_SECONDS)
    spent = time.monotonic() - start
    coevo(bench.workspace, "down")
    if process.returncode != 0:
        raise CoevoError(f"`coevo run {RECIPE}` ended with exit code {process.returncode}: mend what it says above")
    return {"seconds": spent, "peak_bytes": peak}


def resident(process: psutil.Process) -> int:
    """Resident bytes of a process and its descendants."""
    return sum(map(_resident, [process, *_descendants(process)]))


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return 0
