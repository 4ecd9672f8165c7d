"""Cost of publishing beside an iteration: seconds that the publisher's thread works on a revision, traces included.

A run is trained once; then each of its revisions is published again, to an empty store, as the run published it. Only
what a run does beside its own work is timed: what it waits for is in ``orchestration``.
"""

import shutil
from collections.abc import Iterator, Sequence
from statistics import fmean
from time import perf_counter

from benchmarks.bench import Bench, BenchResult
from benchmarks.command import reach
from benchmarks.speed.seconds import between
from coevo.lineage.lineage import Lineage
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import RunStatus
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.tasks.publish.catchup import unpublished
from coevo.tasks.publish.mlflow.tracker import Tracker
from coevo.tasks.publish.mlflow.tracking_store import tracking_store
from coevo.tasks.publish.reporter import Silent

RECIPE, RUN = "homerules-coevo-rl", "coevo-rl"
ITERATIONS = 21
COLD = 1
"""Revisions left out at the beginning: the first one imports MLflow and makes its database."""
TARGET_SHARE = 0.10


def run(bench: Bench) -> None:
    """Measure it where it is missing and print the table."""
    report(bench.cell(RUN, lambda: measure(bench.workspace, reach(bench.workspace, RUN, RECIPE, ITERATIONS, ()))))


def measure(workspace: Workspace, history: Sequence[Manifest]) -> BenchResult:
    """Mean seconds of publishing a revision of a run, also of those where panels were played, and of an iteration."""
    spent = list(published(workspace, history[0].observed["run"]))[COLD:]
    iterations = [between(*pair) for pair in zip(history[COLD - 1 :], history[COLD:], strict=False)]
    evaluated = [one for one, manifest in zip(spent, history[COLD:], strict=True) if manifest.state["panels"]]
    return {
        "revisions": len(spent),
        "publishing_seconds": fmean(spent),
        "evaluated_seconds": fmean(evaluated),
        "iteration_seconds": fmean(iterations),
        "share": sum(spent) / sum(iterations),
    }


def published(workspace: Workspace, run: str) -> Iterator[float]:
    """Seconds of each revision."""
    paths = workspace.existing(run)
    directory = workspace.root / "again"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    tracker = Tracker(tracking_store(directory), "homerules", run, "again")
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        cursor = Cursor(directory / "published.json")
        for publication in unpublished(cursor, lineage, Bank(paths.bank), Silent(), paths):
            start = perf_counter()
            tracker.publish(publication)
            yield perf_counter() - start
    tracker.finish(RunStatus("finished"), 1.0)


def report(result: BenchResult) -> None:
    """Print the seconds, and their share beside the target."""
    spent, evaluated, iteration = (result[f"{name}_seconds"] for name in ("publishing", "evaluated", "iteration"))
    print(f"\npublishing a revision beside the next iteration, mean of {result['revisions']}: {spent:.3f} s, ", end="")
    print(f"{evaluated:.2f} s where panels were played; an iteration takes {iteration:.2f} s: ", end="")
    print(f"{result['share']:.1%} (target {TARGET_SHARE:.0%})")
