"""The size of the workspace's Prefect database after 500 revisions: task runs and pages as a run makes them.

The tasks are those of a real run, stage by stage, but do nothing; the pages are those of its revisions. Pages are made,
and task runs deleted, beside the next iteration, so that each iteration waits as long as one of the recipe works.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path

from benchmarks.bench import ROOT, Bench, BenchResult
from benchmarks.command import coevo, reach
from coevo.flows.servers.servers import use_prefect
from coevo.lineage.lineage import Lineage
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.tasks.cost import stages
from coevo.tasks.publish.catchup import unpublished
from coevo.tasks.publish.mlflow.publication import Publication
from coevo.tasks.publish.reporter import Silent

RECIPE, RUN = "homerules-coevo-rl", "coevo-rl"
ITERATIONS = 5
BRIEF = ("warmstart.steps=2", "warmstart.probe_every=2", "warmstart.probe_tasks=8", "evaluation.tasks=16")
"""Settings of the real run: how much it learns matters to neither tasks nor pages."""
REVISIONS = 500
PAUSE = 0.3
"""Seconds of an iteration, less than the recipe's take, so that 500 of them take minutes."""
MEASURED_EVERY = 25
"""Revisions between two measurements of the size."""
TARGET_BYTES = 30e6


def run(bench: Bench) -> None:
    """Measure it where it is missing and print it."""
    report(bench.cell(RUN, lambda: measure(bench.workspace, reach(bench.workspace, RUN, RECIPE, ITERATIONS, BRIEF))))


def measure(workspace: Workspace, history: Sequence[Manifest]) -> BenchResult:
    """Bytes of the database, its write-ahead log included, at the end and at most."""
    opened = Workspace(workspace.root / "recorded")
    shutil.rmtree(opened.root, ignore_errors=True)
    names = [name for name in stages(history[-2]) if name != "rest"]
    script = [sys.executable, "-P", "-c", "from benchmarks.running.database import record; record()"]
    try:
        said = subprocess.check_output(
            [*script, workspace.root, opened.root, *names], env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True
        )
    finally:
        coevo(opened, "down")
    sizes = [int(line) for line in said.split()]
    return {"revisions": REVISIONS, "tasks": len(names), "bytes": sizes[-1], "bytes_largest": max(sizes)}


def record() -> None:
    """Have a server record a flow run of so many revisions, and print the size of its database now and then.

    It runs in a process of its own, since Prefect is imported after it is known where the server is.
    """
    source, workspace, names = Workspace(Path(sys.argv[1])), Workspace(Path(sys.argv[2])), sys.argv[3:]
    use_prefect(workspace.root)
    from prefect import flow

    from coevo.tasks.publish.prefect import artifacts_of
    from coevo.tasks.run.open_run import pruner
    from coevo.tasks.stage import stage

    tasks = [stage(name)(lambda: None) for name in names]

    @flow(name="coevolve", persist_result=False)
    def play() -> None:
        with artifacts_of(RUN, REVISIONS, RECIPE, print, pruner(workspace.root)) as artifacts:
            assert artifacts is not None
            for number, publication in enumerate(islice(cycle(published(source)), REVISIONS), 1):
                for task in tasks:
                    task()
                artifacts.submit(publication)
                time.sleep(PAUSE)
                if number % MEASURED_EVERY == 0:
                    print(size(workspace.root / "prefect"), flush=True)

    play()
    print(size(workspace.root / "prefect"))


def published(workspace: Workspace) -> Iterator[Publication]:
    """The revisions of the real run, as they are published."""
    paths = workspace.existing(RUN)
    nothing = Cursor(workspace.root / "recorded" / "published.json")
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        yield from unpublished(nothing, lineage, Bank(paths.bank), Silent(), paths)


def size(home: Path) -> int:
    """Bytes of a server's database with all that belongs to it."""
    return sum(file.stat().st_size for file in home.glob("prefect.db*"))


def report(result: BenchResult) -> None:
    """Print the size beside its target."""
    end, most = result["bytes"] / 1e6, result["bytes_largest"] / 1e6
    print(
        f"\nPrefect's database after {result['revisions']} revisions of {result['tasks']} tasks: {end:.1f} MB, "
        f"{most:.1f} MB at most (target {TARGET_BYTES / 1e6:.0f} MB)"
    )
