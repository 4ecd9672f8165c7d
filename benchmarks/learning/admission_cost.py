"""Admission by replay: its seconds, and what a replayed episode takes beside one of the rollout before it.

Both are played by the same policy in the same iterations, as many at a time at the most.
"""

from collections.abc import Sequence

from benchmarks.bench import Bench, BenchResult
from benchmarks.command import reach
from coevo.lineage.revision.manifest import Manifest
from coevo.tasks.cost import stages

RECIPE = "homerules-coevo-rl"
ITERATIONS = 12
COLD = 2
"""Iterations left out at the beginning."""


def run(bench: Bench) -> None:
    """Measure it where it is missing and print the figures."""
    report(bench.cell("coevo-rl", lambda: measure(reach(bench.workspace, "coevo-rl", RECIPE, ITERATIONS, ()))))


def measure(history: Sequence[Manifest]) -> BenchResult:
    """Over the warm iterations of a run in which something was replayed.

    Returns:
        ``replay_ratio`` is seconds an episode of admission, by those of the rollout.
    """
    judged = [manifest for manifest in history[COLD + 1 :] if _replayed(manifest)]
    replayed, played = sum(map(_replayed, judged)), sum(map(_played, judged))
    admission, rollout = (sum(stages(manifest)[stage] for manifest in judged) for stage in ("judge", "rollout"))
    return {
        "iterations": len(judged),
        "episodes": replayed / len(judged),
        "seconds": admission / len(judged),
        "pairs_a_second": replayed / 2 / admission,
        "rollout_seconds": rollout / len(judged),
        "replay_ratio": admission / replayed / (rollout / played),
    }


def report(result: BenchResult) -> None:
    """Print the figures."""
    print(
        f"\nadmission in {result['iterations']} warm iterations: {result['episodes']:.0f} episodes in "
        f"{result['seconds']:.2f} s, {result['pairs_a_second']:.0f} pairs a second; "
        f"rollouts take {result['rollout_seconds']:.2f} s.\n"
        f"A replayed episode takes {result['replay_ratio']:.1f} times what one of the rollout does."
    )


def _replayed(manifest: Manifest) -> float:
    """Episodes of a revision that were replayed."""
    return 2 * float(manifest.metrics["bank/replay/pairs"])


def _played(manifest: Manifest) -> float:
    """Episodes of a revision's rollout."""
    return float(manifest.metrics["cost/episodes"]) - _replayed(manifest)
