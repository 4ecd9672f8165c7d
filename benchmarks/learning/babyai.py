"""Context-lite on BabyAI's goto: success in held-out rooms against the cloned start, over three seeds.

A seed's seconds are those of the whole command: servers, warm start and evaluations too (of a run that was stopped and
continued, at least those of its revisions). The target is a gain of 0.15
within ten minutes, with a critic that explains more than 0.3 of its targets' variance in the last updates.
"""

from collections.abc import Sequence
from functools import partial
from statistics import fmean
from time import perf_counter

from benchmarks.bench import Bench, BenchResult
from benchmarks.command import reach
from coevo.configs.load.load import load_recipe
from coevo.lineage.revision.manifest import Manifest
from coevo.records.intervals import student
from coevo.tasks.cost import wall_seconds

RECIPE = "babyai-context-lite"
SEEDS = range(1, 4)
PANEL = "held-out"
SETTINGS = (f"evaluation.panels=[{PANEL}]", "evaluation.every=1000", "evaluation.final_panels=[]")
LAST = 5
"""Updates at the end whose explained variances are averaged: that of a single one is noisy."""
GAIN, SECONDS, EXPLAINED = 0.15, 600, 0.3


def run(bench: Bench) -> None:
    """Measure what is missing and print the table."""
    report([bench.cell(f"{RECIPE}-{seed}", partial(_measured, bench, seed)) for seed in SEEDS])


def report(results: Sequence[BenchResult]) -> None:
    """Print each seed, and the gain over all tasks of all seeds."""
    print(f"\n{'seed':>4}{'start':>8}{'end':>8}{'seconds':>9}{'explained':>11}   gain [95 %], tasks paired")
    for seed, result in zip(SEEDS, results, strict=True):
        start, end = solved(result, "start"), solved(result, "end")
        figures = f"{fmean(start):8.3f}{fmean(end):8.3f}{result['seconds']:9.0f}{result['explained_variance']:11.2f}"
        print(f"{seed:4}{figures}   {student(end, start)}")
    start, end = ([task for result in results for task in solved(result, when)] for when in ("start", "end"))
    print(f"all {fmean(start):8.3f}{fmean(end):8.3f}{'':20}   {student(end, start)} (target {GAIN:+.2f})")
    print(f"targets a seed: at most {SECONDS} seconds, explained variance above {EXPLAINED}")


def solved(result: BenchResult, when: str) -> list[float]:
    """1 or 0 for each task of the panel."""
    return [float(task) for task in result[when]]


def _measured(bench: Bench, seed: int) -> BenchResult:
    since = perf_counter()
    settings = (f"seed={seed}", *SETTINGS)
    history = reach(bench.workspace, f"{RECIPE}-{seed}", RECIPE, load_recipe(RECIPE).iterations, settings)
    return outcome(history) | {"seconds": max(perf_counter() - since, sum(map(wall_seconds, history)))}


def outcome(history: Sequence[Manifest]) -> BenchResult:
    """The tasks of the panel before and after, and the critic's explained variance at the end."""
    explained = [manifest.metrics["policy/critic/explained_variance"] for manifest in history[-LAST:]]
    start, end = (manifest.state["outcomes"][PANEL] for manifest in (history[0], history[-1]))
    return {"start": start, "end": end, "iterations": history[-1].iteration, "explained_variance": fmean(explained)}
