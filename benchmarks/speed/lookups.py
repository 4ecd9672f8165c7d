"""Retrieval at every step of an episode: its share of the rollout, and the tokens that it adds to a turn's prompt."""

from collections.abc import Sequence
from statistics import fmean

from benchmarks.bench import Bench, BenchResult
from benchmarks.command import reach
from coevo.lineage.revision.manifest import Manifest
from coevo.tasks.cost import stages

RECIPE = "homerules-slea-rl"
ITERATIONS = 12
COLD = 2
"""Iterations left out at the beginning."""
TARGET_SHARE = 0.03


def run(bench: Bench) -> None:
    """Measure it where it is missing and print the figures."""
    report(bench.cell("slea-rl", lambda: measure(reach(bench.workspace, "slea-rl", RECIPE, ITERATIONS, ()))))


def measure(history: Sequence[Manifest]) -> BenchResult:
    """Over the warm iterations of a run: seconds, and tokens a turn."""
    warm = history[COLD + 1 :]
    rollout = sum(stages(manifest)["rollout"] for manifest in warm)
    looked_up, recognised = (sum(_observed(manifest, name) for manifest in warm) for name in ("", "cluster_"))
    return {
        "iterations": len(warm),
        "rollout_seconds": rollout,
        "lookup_seconds": looked_up,
        "lookup_share": looked_up / rollout,
        "recognition_seconds": recognised,
        "tokens_a_turn": fmean(manifest.metrics["bank/retrieval/step_tokens"] for manifest in warm),
    }


def report(result: BenchResult) -> None:
    """Print the share beside its target, and apart from it what follows from a look-up."""
    print(
        f"\nlook-ups at every step, {result['iterations']} warm iterations: {result['lookup_seconds']:.2f} s of ",
        end="",
    )
    print(
        f"{result['rollout_seconds']:.1f} s of rollout, {result['lookup_share']:.1%} (target {TARGET_SHARE:.0%}); ",
        end="",
    )
    print(f"they add {result['tokens_a_turn']:.0f} tokens to a turn's prompt.")
    print(f"Finding the cluster of each observation for the advantages: {result['recognition_seconds']:.2f} s.")


def _observed(manifest: Manifest, part: str) -> float:
    return float(manifest.rates[f"bank/retrieval/{part}seconds"])
