"""A pilot beyond the household: GRPO without a bank, a frozen policy with one, and both together, over five seeds.

Where a tiny policy has not been seen to read notes, GRPO plays alone.

Each seed clones a policy, from which all its arms start (that of ``lifelong-db-grpo`` was shown fewer notes); success
is that on the panel ``held-out``. A gain is the last revision minus the first, by seed. The settings are those of the
recipes; they were chosen with another seed and world.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean

from benchmarks.bench import Bench, BenchResult
from benchmarks.command import reach
from benchmarks.speed.seconds import loop
from coevo.configs.load.load import load_recipe
from coevo.records.intervals import student

FROZEN = "experience-only"
METHODS = (FROZEN, "grpo", "coevo-rl")
ARMS = dict.fromkeys(("minesweeper", "lifelong-db", "searchqa"), METHODS) | dict.fromkeys(
    ("webshop", "sokoban"), ("grpo",)
)
"""Methods by environment."""
SEEDS = range(1, 6)
LATER_SEEDS = {"lifelong-db-grpo": range(6, 11)}
"""Seeds of recipes whose settings changed after the first seeds were played; ``results/ledger/pilot`` keeps those."""
PANEL = "held-out"
GAIN = "gain by seed [95 %]"
SETTINGS = ("evaluation.every=1000", "evaluation.final_panels=[]")


def run(bench: Bench) -> None:
    """Measure what is missing and print the table."""
    recipes = [f"{name}-{method}" for name, methods in ARMS.items() for method in methods]
    report({recipe: [cell(bench, recipe, seed) for seed in seeds_of(recipe)] for recipe in recipes})


def seeds_of(recipe: str) -> range:
    """Seeds that judge a recipe."""
    return LATER_SEEDS.get(recipe, SEEDS)


def cell(bench: Bench, recipe: str, seed: int) -> BenchResult:
    """One run, from the start to the iterations of its recipe."""
    return bench.cell(f"{recipe}-{seed}", partial(_outcome, bench, recipe, seed))


def report(cells: Mapping[str, Sequence[BenchResult]]) -> None:
    """Print success at start and end, the gain by seed, and what an arm ends above the first of its environment.

    Seeds are compared one by one, so that an arm with other seeds has no such lead.
    """
    print(f"\n{'recipe':30}{'start':>8}{'end':>8}{'worst':>8}{'seconds':>9}   {GAIN:26} above the frozen policy's end")
    for recipe, results in cells.items():
        start, end = _success(results, "start"), _success(results, "end")
        spent = fmean(result["loop_seconds"] for result in results)
        frozen = cells.get(_frozen(recipe)) if recipe not in LATER_SEEDS else None
        above = "" if frozen is None or recipe.endswith(FROZEN) else str(student(end, _success(frozen, "end")))
        figures = f"{fmean(start):8.3f}{fmean(end):8.3f}{min(end):8.3f}{spent:9.0f}"
        print(f"{recipe:30}{figures}   {student(end, start)!s:26} {above}".rstrip())


def _frozen(recipe: str) -> str:
    """Recipe of the frozen policy in the same environment."""
    (environment,) = (recipe.removesuffix(f"-{method}") for method in METHODS if recipe.endswith(f"-{method}"))
    return f"{environment}-{FROZEN}"


def _success(results: Sequence[BenchResult], when: str) -> list[float]:
    return [result[when] for result in results]


def _outcome(bench: Bench, recipe: str, seed: int) -> BenchResult:
    iterations = load_recipe(recipe).iterations
    history = reach(bench.workspace, f"{recipe}-{seed}", recipe, iterations, (f"seed={seed}", *SETTINGS))
    start, end = (history[at].metrics[f"agent/success/{PANEL}"] for at in (0, -1))
    return {"start": start, "end": end, "iterations": history[-1].iteration, "loop_seconds": loop(history)}
