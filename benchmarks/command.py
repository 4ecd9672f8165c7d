"""The ``coevo`` command in a process of its own, and what its runs left behind."""

import subprocess
import sys
from collections.abc import Sequence

from benchmarks.bench import ROOT
from coevo.lineage.lineage import Lineage
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

COMMAND = (sys.executable, "-P", "-m", "coevo.flows")


def coevo(workspace: Workspace, *arguments: str) -> None:
    """Run a command; what it prints is shown.

    Raises:
        CoevoError: it failed.
    """
    done = subprocess.run([*COMMAND, *arguments, "--workspace", str(workspace.root)], cwd=ROOT, check=False)
    if done.returncode != 0:
        raise CoevoError(
            f"`coevo {' '.join(arguments)}` ended with exit code {done.returncode}: mend what it says above and start "
            f"the benchmark again; where its code has changed since, remove {workspace.root} first"
        )


def reach(workspace: Workspace, run: str, recipe: str, iterations: int, settings: Sequence[str]) -> list[Manifest]:
    """Start a run, or continue it, until it has done so many iterations; its revisions, oldest first."""
    if run in {paths.name for paths in workspace.runs()}:
        coevo(workspace, "resume", run, "--iterations", str(iterations))
    else:
        coevo(workspace, "run", recipe, "--name", run, f"iterations={iterations}", *settings)
    with Lineage.open(workspace.existing(run).lineage, workspace.cache) as lineage:
        return lineage.history.log()
