"""Gain of learning both over learning one: joint, policy-only at equal wall-clock, and bank-only, over five seeds.

All arms of a seed start from the same warm-started policy. Policy-only training continues until it has spent as many
seconds in its loop as the joint run did; the frozen policy plays as many iterations as the joint run.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from math import ceil
from statistics import fmean

from benchmarks.bench import Bench, BenchResult
from benchmarks.command import reach
from benchmarks.speed.seconds import loop
from coevo.lineage.revision.manifest import Manifest
from coevo.records.intervals import student

ARMS = {"joint": "homerules-coevo-rl", "policy-only": "homerules-grpo", "frozen": "homerules-experience-only"}
SEEDS = range(1, 6)
ITERATIONS = 40
PANELS = ("seen-houses", "no-bank", "other-facts", "other-houses")
SETTINGS = ("evaluation.every=1000",)  # the first and the last revision are evaluated all the same


def run(bench: Bench) -> None:
    """Measure what is missing and print the table."""
    report(measure(bench, SEEDS, ITERATIONS, SETTINGS))


def measure(
    bench: Bench, seeds: Iterable[int], iterations: int, settings: Sequence[str]
) -> dict[str, list[BenchResult]]:
    """The cells of each arm, in the order of the seeds."""
    cells: dict[str, list[BenchResult]] = {arm: [] for arm in ARMS}
    for seed in seeds:
        seeded = (f"seed={seed}", *settings)
        joint = bench.cell(f"joint-{seed}", partial(_fixed, bench, "joint", seed, iterations, seeded))
        budget = joint["loop_seconds"]
        cells["joint"].append(joint)
        cells["policy-only"].append(
            bench.cell(f"policy-only-{seed}", partial(_equal_time, bench, seed, iterations, seeded, budget))
        )
        cells["frozen"].append(bench.cell(f"frozen-{seed}", partial(_fixed, bench, "frozen", seed, iterations, seeded)))
    return cells


def further(iterations: int, spent: float, budget: float) -> int:
    """Iterations that use up what is left of a budget of seconds, at the pace so far; 0 once it is used up."""
    return max(0, ceil((budget - spent) / spent * iterations))


def report(cells: dict[str, list[BenchResult]]) -> None:
    """Print success by panel and arm, and what the joint runs gain over the other arms."""
    print(f"\n{'panel':14}{'arm':14}{'start':>8}{'mean':>8}{'worst':>8}   joint minus this [95 %]")
    for panel in PANELS:
        for arm, results in cells.items():
            start, end = _success(results, "start", panel), _success(results, "success", panel)
            gain = str(student(_success(cells["joint"], "success", panel), end)) if arm != "joint" else ""
            print(f"{panel:14}{arm:14}{fmean(start):8.3f}{fmean(end):8.3f}{min(end):8.3f}   {gain}")
    for arm, results in cells.items():
        spent, done = (fmean(result[key] for result in results) for key in ("loop_seconds", "iterations"))
        print(f"{arm}: {len(results)} seeds, {done:.0f} iterations in {spent:.0f} s of the loop (means)")


def _fixed(bench: Bench, arm: str, seed: int, iterations: int, settings: Sequence[str]) -> BenchResult:
    return _outcome(reach(bench.workspace, f"{arm}-{seed}", ARMS[arm], iterations, settings))


def _equal_time(bench: Bench, seed: int, iterations: int, settings: Sequence[str], budget: float) -> BenchResult:
    history = reach(bench.workspace, f"policy-only-{seed}", ARMS["policy-only"], iterations, settings)
    while more := further(history[-1].iteration, loop(history), budget):
        goal = history[-1].iteration + more
        history = reach(bench.workspace, f"policy-only-{seed}", ARMS["policy-only"], goal, settings)
    return _outcome(history)


def _outcome(history: Sequence[Manifest]) -> BenchResult:
    start, end = history[0].metrics, history[-1].metrics
    return {
        "start": {panel: start[f"agent/success/{panel}"] for panel in PANELS},
        "success": {panel: end[f"agent/success/{panel}"] for panel in PANELS},
        "iterations": history[-1].iteration,
        "loop_seconds": loop(history),
    }


def _success(results: Sequence[BenchResult], when: str, panel: str) -> list[float]:
    return [result[when][panel] for result in results]


LEVEL = ("env.level=2",)


def run_level2(bench: Bench) -> None:
    """The same at level 2: six families of tasks, up to ten steps. The recipes differ in nothing but the level."""
    report(measure(bench, SEEDS, ITERATIONS, (*SETTINGS, *LEVEL)))
