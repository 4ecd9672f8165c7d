"""Kept figures beside new ones: has anything become worse than it was?

Compared is what the speed of a machine cancels out of: ratios and shares of one run. New cells and their runs go to
``workspace/bench/check/``; those that are kept stay as they are.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

from benchmarks.bench import Bench, BenchResult
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

SLACK = 1.3
"""How many times worse a figure may be: two runs of the same code have been 1.28 apart."""


@dataclass(frozen=True)
class Figure:
    """One number of one cell, found by its keys, and which way it gets better."""

    benchmark: str
    cell: str
    keys: tuple[str, ...]
    better: Literal["more", "less"]

    def of(self, bench: Bench) -> float:
        """Value of this measure in a bench.

        Raises:
            CoevoError: it has not been measured.
        """
        path = bench.cells / f"{self.cell}.json"
        if not path.is_file():
            raise CoevoError(
                f"{path}: there is nothing to compare with; run python -m benchmarks {self.benchmark} first"
            )
        found: BenchResult = json.loads(path.read_text(encoding="utf-8"))
        return float(reduce(lambda held, key: held[key], self.keys, found))  # type: ignore[arg-type]

    def worse(self, kept: float, new: float) -> bool:
        """Whether it has become worse by more than the slack."""
        return new * SLACK < kept if self.better == "more" else new > kept * SLACK


FIGURES = (
    Figure("rollout_peers", "recipe", ("ratio",), "more"),
    Figure("rollout_peers", "recipe", ("drawn_ratio",), "more"),
    Figure("rollout_peers", "full", ("ratio",), "more"),
    *(
        Figure("update_peers", cell, (peer, "ratio"), "more")
        for cell in ("recipe", "full")
        for peer in ("trl", "torch")
    ),
    Figure("trainer", "processes", ("speedup",), "more"),
    Figure("vllm", "cpu", ("share",), "more"),
    Figure("orchestration", "coevo-rl", ("orchestration_share",), "less"),
    Figure("admission", "coevo-rl", ("replay_ratio",), "less"),
    Figure("publishing", "coevo-rl", ("share",), "less"),
    Figure("lookups", "slea-rl", ("lookup_share",), "less"),
)


def anew(bench: Bench) -> Bench:
    """An empty bench in the place of a kept one."""
    workspace = Workspace(bench.workspace.root.parent / "check" / bench.workspace.root.name)
    shutil.rmtree(workspace.root, ignore_errors=True)
    return replace(bench, cells=workspace.root / "results", workspace=Workspace(workspace.root / "runs"))


def check(name: str, kept: Bench, run: Callable[[Bench], None], figures: Sequence[Figure] = FIGURES) -> list[str]:
    """Run a benchmark once more and print its figures beside the kept ones.

    Returns:
        What has become worse, a line each.

    Raises:
        CoevoError: the benchmark has no figure that can be compared, or none is kept.
    """
    mine = [figure for figure in figures if figure.benchmark == name]
    if not mine:
        there = ", ".join(dict.fromkeys(figure.benchmark for figure in figures))
        raise CoevoError(f"{name}: depends on the machine, nothing to compare with; choose from {there}")
    before = {figure: figure.of(kept) for figure in mine}
    bench = anew(kept)
    run(bench)
    return _beside(before, {figure: figure.of(bench) for figure in mine})


def _beside(before: Mapping[Figure, float], after: Mapping[Figure, float]) -> list[str]:
    lines = {
        figure: f"{figure.benchmark} {figure.cell} {' '.join(figure.keys)}: {was:.3g} kept, {after[figure]:.3g} now"
        for figure, was in before.items()
    }
    print("\n" + "\n".join(lines.values()))
    return [lines[figure] for figure, was in before.items() if figure.worse(was, after[figure])]
