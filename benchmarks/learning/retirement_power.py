"""Retirement in a drifting world: size of the bank and success over 3,000 iterations, with the scripted expert.

Every 50 iterations one of sixteen houses changes all its facts. Compared are a bank that keeps every entry, one whose
entries retire by replay, and one of the same size from which drawn entries retire.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from benchmarks.bench import Bench, BenchResult
from benchmarks.learning.scripted import iterate, scripted
from coevo.configs.load.load import load_recipe
from coevo.configs.run_config import RunConfig
from coevo.envs.homerules.house_conventions import changes_before, facts
from coevo.envs.homerules.house_world import HOUSES
from coevo.records.intervals import student
from coevo.tasks.session import Session

RECIPE = "homerules-experience-only"
SEEDS, ITERATIONS, DRIFT, BLOCK = range(1, 4), 3000, 50, 50
SETTINGS = ("warmstart=null", "rollout.group_size=4", f"env.drift={DRIFT}")
KEPT, RETIRED = "bank.retirement=null", "bank.retirement={entries: 8, unseen: 100}"
MAX_RATIO, LOSS = 1.5, 0.02
"""Targets: active entries as a multiple of the facts in force, and success that retirement may lose."""
FIGURES = ("success", "active", "in_force", "admitted", "retired")


def run(bench: Bench) -> None:
    """Measure what is missing and print the table."""
    report(measure(bench, SEEDS, ITERATIONS))


def measure(bench: Bench, seeds: Sequence[int], iterations: int) -> dict[str, list[BenchResult]]:
    """The cells of each arm, in the order of the seeds; the control has the size of the seed's retiring bank."""
    cells: dict[str, list[BenchResult]] = {"kept": [], "retired": [], "random": []}
    for seed in seeds:
        for arm, found in cells.items():
            setting = {"kept": KEPT, "retired": RETIRED}.get(arm) or control(cells["retired"][-1])
            found.append(bench.cell(f"{arm}-{seed}", partial(played, setting, seed, iterations)))
    return cells


def control(retired: BenchResult) -> str:
    """Setting of a bank of the same size as that of a cell, at least 1, from which drawn entries retire."""
    size = max(1, round(last_third(retired, "active")))
    return f"bank.retirement={{entries: 0, capacity: {size}, beyond: random}}"


def played(setting: str, seed: int, iterations: int) -> BenchResult:
    """Means of each block of 50 iterations."""
    ends = (f"iterations={iterations}", f"evaluation.every={iterations}", f"seed={seed}", f"env.world={seed}")
    config = load_recipe(RECIPE, [*SETTINGS, *ends, setting])
    with TemporaryDirectory(prefix="coevo-") as directory, scripted(Path(directory), config) as session:
        rows = [figures(session) for _ in range(iterations)]
    blocks = [rows[start : start + BLOCK] for start in range(0, iterations, BLOCK)]
    series = {name: [fmean(row[name] for row in block) for block in blocks] for name in FIGURES}
    return {"setting": setting, "facts": len(truth(config, iterations)), **series}


def figures(session: Session) -> Mapping[str, float]:
    """Figures of one more iteration."""
    episodes, metrics = iterate(session), session.pending.metrics
    known = truth(session.config, session.iteration)
    return {
        "success": fmean(episode.success for episode in episodes),
        "active": metrics["bank/size"],
        "in_force": sum(entry.strategy in known for entry in session.bank.entries),
        "admitted": metrics["bank/admitted"],
        "retired": metrics["bank/retired"],
    }


def truth(config: RunConfig, iteration: int) -> set[str]:
    """Lessons about all facts in force in an iteration."""
    return set(_lessons(config.env.model_dump(), iteration))


def _lessons(env: Mapping[str, int], iteration: int) -> Iterator[str]:
    for house, changes in changes_before(iteration, env["drift"], HOUSES).items():
        known = facts(env["level"], f"train/{env['world']}", house, changes)
        yield from map(known.lesson, known.subjects)


def last_third(cell: BenchResult, figure: str) -> float:
    """Mean of a figure over the last third of the iterations."""
    series = cell[figure]
    return fmean(series[-(len(series) // 3) :])


def growth(cell: BenchResult) -> float:
    """Active entries of the last sixth of the iterations minus those of the sixth before, as means."""
    sixth = len(cell["active"]) // 6
    return fmean(cell["active"][-sixth:]) - fmean(cell["active"][-2 * sixth : -sixth])


def report(cells: Mapping[str, Sequence[BenchResult]]) -> None:
    """Print the last third of each arm, and what retirement gains over the other two."""
    print(f"\nlast third of the iterations, means of {len(cells['kept'])} seeds")
    heads = f"{'success':>8}{'active':>9}{'in force':>10}{'most/facts':>12}{'growth':>8}"
    print(f"{'arm':10}{heads}   success of retired minus this [95 %]")
    ours = [last_third(cell, "success") for cell in cells["retired"]]
    for arm, found in cells.items():
        means = [[last_third(cell, figure) for cell in found] for figure in ("success", "active", "in_force")]
        most = max(max(cell["active"][-(len(cell["active"]) // 3) :]) / cell["facts"] for cell in found)
        gain = "" if arm == "retired" else str(student(ours, means[0]))
        row = f"{fmean(means[0]):8.3f}{fmean(means[1]):9.1f}{fmean(means[2]):10.1f}{most:12.2f}"
        print(f"{arm:10}{row}{fmean(map(growth, found)):8.1f}   {gain}")
    print(f"targets: at most {MAX_RATIO} times the facts, no growth, success at least kept - {LOSS}, and above random")
