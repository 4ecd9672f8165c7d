"""Cells: a benchmark is a table of measurements, each kept in a JSON file of its own.

    benchmarks/results/<benchmark>/<cell>.json   kept in git; a cell that is there is not measured again
    workspace/bench/<benchmark>/                 the runs behind it

So a benchmark that was stopped continues where it was, and to measure a cell again means removing its file.
"""

import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coevo.lineage.atomic_files import write_atomically
from coevo.lineage.revision.code_version import code_revision, packages
from coevo.lineage.workspace import Workspace

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"

BenchResult = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """Where one benchmark keeps its cells and its runs."""

    cells: Path
    workspace: Workspace

    @classmethod
    def of(cls, name: str) -> "Bench":
        """The benchmark of this name in the checkout."""
        return cls(RESULTS / name, Workspace(ROOT / "workspace" / "bench" / name))

    def cell(self, name: str, measure: Callable[[], BenchResult]) -> BenchResult:
        """The result of a cell, which is measured where there is none yet."""
        path = self.cells / f"{name}.json"
        if not path.is_file():
            result = measure() | {"measured_on": machine()}
            self.cells.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(result, indent=1, sort_keys=True) + "\n")
        return dict(json.loads(path.read_text(encoding="utf-8")))


def machine() -> dict[str, object]:
    """Code, machine and versions that a result depends on."""
    return {
        "code": code_revision()[:12],
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "torch": packages()["torch"],
    }
