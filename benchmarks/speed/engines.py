"""The same recipe on transformers and on vLLM: success of the same tasks, before any update and after some.

Both runs have the same seed, hence the same warm-started policy, tasks and keys of draws. The engines draw differently
from the same distribution (docs/engines.md), so outcomes are paired by task, and the same policy is expected to differ
by no more than the noise that the interval shows; what updates have made of it likewise.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from time import perf_counter

from benchmarks.bench import Bench, BenchResult
from benchmarks.command import reach
from coevo.lineage.revision.manifest import Manifest
from coevo.records.intervals import Interval, student

RECIPE = "homerules-coevo-rl"
ENGINES = ("transformers", "vllm")
SEED, ITERATIONS, TASKS = 1, 4, 384
PANEL = "seen-houses"
MOMENTS = ("start", "end")
GAP = 1e-5
"""How far the engines' log-probs may lie from the trainer's."""


def run(bench: Bench) -> None:
    """Measure what is missing and print the table."""
    report({engine: bench.cell(engine, partial(_measured, bench, engine)) for engine in ENGINES})


def settings(engine: str) -> list[str]:
    """Overrides of the recipe."""
    played = [f"evaluation.panels=[{PANEL}]", f"evaluation.tasks={TASKS}", "evaluation.final_panels=[]"]
    return [f"seed={SEED}", f"rollout.engine.type={engine}", "evaluation.every=1000", *played]


def report(results: Mapping[str, BenchResult]) -> None:
    """Print success on both, and the difference with its interval."""
    print(f"\n{PANEL}, {TASKS} tasks, vllm minus transformers [95 %], tasks paired")
    for moment in MOMENTS:
        shares = "".join(f"{engine:>14}{fmean(_solved(results[engine], moment)):7.3f}" for engine in ENGINES)
        found = difference(results, moment)
        verdict = "within noise" if found.low <= 0 <= found.high else "NOT within noise"
        print(f"{moment:5}{shares}   {found}: {verdict}")
    for engine in ENGINES:
        figures = results[engine]
        print(
            f"{engine}: {figures['iterations']} iterations in {figures['seconds']:.0f} s; log-probs within "
            f"{figures['mismatch_max']:.1e} of the trainer's (target {GAP:.0e})"
        )


def difference(results: Mapping[str, BenchResult], moment: str) -> Interval:
    """Success on vLLM minus that on transformers."""
    ours, theirs = (_solved(results[engine], moment) for engine in reversed(ENGINES))
    return student(ours, theirs)


def outcome(history: Sequence[Manifest]) -> BenchResult:
    """Each task of the panel before and after, and the largest distance of log-probs in any update."""
    start, end = (manifest.state["outcomes"][PANEL] for manifest in (history[0], history[-1]))
    gaps = [manifest.metrics["policy/update/mismatch_max"] for manifest in history[1:]]
    return {"start": start, "end": end, "iterations": history[-1].iteration, "mismatch_max": max(gaps)}


def _measured(bench: Bench, engine: str) -> BenchResult:
    since = perf_counter()
    history = reach(bench.workspace, engine, RECIPE, ITERATIONS, settings(engine))
    return outcome(history) | {"seconds": perf_counter() - since, "seed": SEED}


def _solved(result: BenchResult, moment: str) -> list[float]:
    return [float(task) for task in result[moment]]
