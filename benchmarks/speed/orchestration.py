"""Cost of an iteration besides learning: seconds per stage of warm iterations, and the share of orchestration.

All iterations of the recipe count: late ones, in which fewer groups are learned from and fewer lessons replayed, take
little more than half as long as the first ones, and orchestration takes as long in them.
"""

from collections.abc import Sequence
from statistics import median

from benchmarks.bench import Bench, BenchResult
from benchmarks.command import reach
from benchmarks.speed.seconds import LEARNING, orchestration, share
from coevo.lineage.revision.manifest import Manifest
from coevo.tasks.cost import stages

RECIPE = "homerules-coevo-rl"
ITERATIONS = 40
COLD = 2
"""Iterations left out at the beginning."""
TARGET_SECONDS, TARGET_SHARE = 0.2, 0.08


def run(bench: Bench) -> None:
    """Measure it where it is missing and print the table."""
    report(bench.cell("coevo-rl", lambda: medians(reach(bench.workspace, "coevo-rl", RECIPE, ITERATIONS, ()))))


def medians(history: Sequence[Manifest]) -> BenchResult:
    """Medians over the warm iterations of a run."""
    before, warm = history[COLD:-1], history[COLD + 1 :]
    names = sorted({name for manifest in warm for name in stages(manifest)})
    return {
        "iterations": len(warm),
        "stages": {name: median(stages(manifest).get(name, 0.0) for manifest in warm) for name in names},
        "orchestration_seconds": median(map(orchestration, before, warm)),
        "orchestration_share": median(map(share, before, warm)),
    }


def report(result: BenchResult) -> None:
    """Print seconds a stage, and orchestration beside its target."""
    print(f"\nmedian seconds of {result['iterations']} warm iterations")
    for name, spent in sorted(result["stages"].items(), key=lambda item: -item[1]):
        print(f"  {name:18}{spent:8.3f}{'' if name in LEARNING else '   orchestration'}")
    spent, part = result["orchestration_seconds"], result["orchestration_share"]
    print(f"orchestration, between stages included: {spent:.2f} s (target {TARGET_SECONDS}), ", end="")
    print(f"{part:.0%} of an iteration without evaluation (target {TARGET_SHARE:.0%})")
