"""The size of the workspace's Prefect database after 500 revisions: task runs and pages as a run makes them.

The tasks are those of a real run, stage by stage, but do nothing; the pages are those of its revisions. Pages are made,
and task runs deleted, beside the next iteration, so that each iteration waits as long as one of the recipe works.
"""

import os
import shutil
import time
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

from benchmarks.bench import Bench, Result
from benchmarks.command import coevo, reach
from flows.servers import ensure_prefect
from flows.spending import stages
from lineage.cursor import Cursor
from lineage.lineage import Lineage
from lineage.manifest import Manifest
from lineage.workspace import Workspace
from memory.store import Bank
from tasks.catchup import unpublished
from tasks.report import Silent
from tasks.tracking.publication import Publication

RECIPE, RUN = "homerules-coevo-rl", "coevo-rl"
ITERATIONS = 5
BRIEF = ("warmstart.steps=2", "warmstart.probe_every=2", "warmstart.probe_tasks=8", "evaluation.tasks=16")
"""Settings of the real run: how much it learns matters to neither tasks nor pages."""
REVISIONS = 500
PAUSE = 0.3
"""Seconds of an iteration, less than the recipe's take, so that 500 of them take minutes."""
LOOK = 25
"""Revisions between two looks at the size."""
TARGET_BYTES = 30e6


def run(bench: Bench) -> None:
    """Measure it where it is missing and print it."""
    report(bench.cell(RUN, lambda: measure(bench.workspace, reach(bench.workspace, RUN, RECIPE, ITERATIONS, BRIEF))))


def measure(workspace: Workspace, history: Sequence[Manifest]) -> Result:
    """Bytes of the database, its write-ahead log included, at the end and at most."""
    place = Workspace(workspace.root / "recorded")
    shutil.rmtree(place.root, ignore_errors=True)
    names = [name for name in stages(history[-2]) if name != "rest"]
    paths = workspace.existing(RUN)
    cursor = Cursor(place.root / "published.json")
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        published = list(unpublished(cursor, lineage, Bank(paths.bank), Silent(), paths.scratch))
    sizes: list[int] = []
    try:
        record(place, names, published, sizes)
    finally:
        coevo(place, "down")
    return {
        "revisions": REVISIONS,
        "tasks": len(names),
        "bytes": sizes[-1],
        "bytes_largest": max(sizes),
    }


def record(place: Workspace, names: Sequence[str], published: Sequence[Publication], sizes: list[int]) -> None:
    """Have a server record a flow run of so many revisions; ``sizes`` gets the database's now and then."""
    from prefect import flow
    from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_LEVEL, temporary_settings

    from tasks.artifacts import artifacts_of
    from tasks.prune import kept_task_runs
    from tasks.stage import stage

    tasks = [stage(name)(lambda: None) for name in names]

    @flow(name="coevolve", persist_result=False)
    def play() -> None:
        with artifacts_of(RUN, REVISIONS, print, kept_task_runs(place.root)) as artifacts:
            assert artifacts is not None
            for number, publication in enumerate(islice(cycle(published), REVISIONS), 1):
                for task in tasks:
                    task()
                artifacts.submit(publication)
                time.sleep(PAUSE)
                if number % LOOK == 0:
                    sizes.append(size(place.root / "prefect"))

    url = ensure_prefect(place.root)
    os.environ["PREFECT_HOME"] = str(place.root.resolve() / "prefect")
    with temporary_settings({PREFECT_API_URL: url, PREFECT_LOGGING_LEVEL: "CRITICAL"}):
        play()
    sizes.append(size(place.root / "prefect"))


def size(home: Path) -> int:
    """Bytes of a server's database with all that belongs to it."""
    return sum(file.stat().st_size for file in home.glob("prefect.db*"))


def report(result: Result) -> None:
    """Print the size beside its target."""
    end, most = result["bytes"] / 1e6, result["bytes_largest"] / 1e6
    print(
        f"\nPrefect's database after {result['revisions']} revisions of {result['tasks']} tasks: {end:.1f} MB, "
        f"{most:.1f} MB at most (target {TARGET_BYTES / 1e6:.0f} MB)"
    )
