"""``coevo ui`` in an empty workspace: seconds from the command to both pages answering, the start of Python included.

The sample's take longer the first time, since its revisions are published to them.
"""

import shutil
import time
import urllib.request

from benchmarks.bench import Bench, BenchResult
from benchmarks.command import coevo
from coevo.flows.sample import FOLDER
from coevo.flows.servers.servers import mlflow_pages, prefect_pages
from coevo.lineage.workspace import Workspace

TARGET_SECONDS = 25.0


def run(bench: Bench) -> None:
    """Measure it where it is missing and print it."""
    found = bench.cell("from-nothing", lambda: measure(bench.workspace))
    print(
        f"\nfrom coevo ui to both pages answering: {found['seconds']:.1f} s (target {TARGET_SECONDS:.0f}), "
        f"{found['again_seconds']:.1f} s where they run already; the sample's {found['sample_seconds']:.1f} s"
    )


def measure(workspace: Workspace) -> BenchResult:
    """Seconds of the command in a workspace that is not there, of the same command again, and with ``--sample``."""
    shutil.rmtree(workspace.root, ignore_errors=True)
    sample = Workspace(workspace.root / FOLDER)
    try:
        return {
            "seconds": _until_answered(workspace, workspace),
            "again_seconds": _until_answered(workspace, workspace),
            "sample_seconds": _until_answered(workspace, sample, "--sample"),
        }
    finally:
        coevo(sample, "down")
        coevo(workspace, "down")


def _until_answered(workspace: Workspace, shown: Workspace, *options: str) -> float:
    start = time.monotonic()
    coevo(workspace, "ui", *options)
    for url in (prefect_pages(shown.root), mlflow_pages(shown.root)):
        with urllib.request.urlopen(url, timeout=60) as page:
            page.read()
    return time.monotonic() - start
