"""Gain of each method: success at the end against the start, task by task, over three seeds of HomeRules level 1.

Each method runs for the iterations that its recipe says, and is measured on tasks of the houses that its recipe plays
in: the table compares every method with its own start, not methods with each other.
``reflexion-style`` learns nothing that lasts: its gain is what later attempts at the same task add to the first.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean

from benchmarks.bench import Bench, BenchResult
from benchmarks.command import reach
from benchmarks.speed.seconds import loop
from coevo.configs.load.load import load_recipe
from coevo.lineage.revision.manifest import Manifest
from coevo.records.intervals import Interval, student

METHODS = (
    "coevo-rl",
    "slea-rl",
    "context-lite",
    "jerp",
    "retroagent",
    "skillrl-style",
    "grpo",
    "dr-grpo",
    "rloo",
    "reinforce",
    "gigpo",
    "ppo",
    "experience-only",
    "memrl-style",
    "reflexion-style",
)
SEEDS = range(1, 4)
ATTEMPTS = {"reflexion-style": 3}
"""Methods that are judged by Discovery@k, and k."""
PANEL = "seen-houses"
SETTINGS = ("evaluation.every=1000", f"evaluation.panels=[{PANEL}]", "evaluation.final_panels=[]")


def run(bench: Bench) -> None:
    """Measure what is missing and print the table."""
    report({method: [cell(bench, method, seed) for seed in SEEDS] for method in METHODS})


def cell(bench: Bench, method: str, seed: int) -> BenchResult:
    """One run, from the start to the iterations of its recipe."""
    return bench.cell(f"{method}-{seed}", partial(_outcome, bench, method, seed))


def report(cells: Mapping[str, Sequence[BenchResult]]) -> None:
    """Print success at start and end, and the gain over all tasks of all seeds."""
    print(f"\n{'method':18}{'start':>8}{'end':>8}{'worst':>8}{'seconds':>9}   gain [95 %], tasks paired")
    for method, results in cells.items():
        start, end = ([fmean(_solved(result, when)) for result in results] for when in ("start", "end"))
        spent = fmean(result["loop_seconds"] for result in results)
        print(f"{method:18}{fmean(start):8.3f}{fmean(end):8.3f}{min(end):8.3f}{spent:9.0f}   {gain(results)}")


def gain(results: Sequence[BenchResult]) -> Interval:
    """End minus start over the tasks of all seeds."""
    start, end = ([task for result in results for task in _solved(result, when)] for when in ("start", "end"))
    return student(end, start)


def _solved(result: BenchResult, when: str) -> list[float]:
    return [float(task) for task in result[when]]


def _outcome(bench: Bench, method: str, seed: int) -> BenchResult:
    recipe = f"homerules-{method}"
    iterations = load_recipe(recipe).iterations
    history = reach(bench.workspace, f"{method}-{seed}", recipe, iterations, (f"seed={seed}", *SETTINGS))
    start, end = ends(method, history)
    return {"start": start, "end": end, "iterations": history[-1].iteration, "loop_seconds": loop(history)}


def ends(method: str, history: Sequence[Manifest]) -> tuple[str, str]:
    """``1`` or ``0`` for each task of the panel, before and after.

    Of a method that is judged by attempts, the first attempt and all of them; whoever is solved stays so.
    """
    last = history[-1]
    if method not in ATTEMPTS:
        return history[0].state["outcomes"][PANEL], last.state["outcomes"][PANEL]
    first: str = last.state["outcomes"][PANEL]
    solved = round(last.metrics[f"bank/discovery/{PANEL}/{ATTEMPTS[method]}"] * len(first))
    return first, first.replace("0", "1", solved - first.count("1"))
