"""Publishing for commands that commit a revision without running the loop."""

import typer

from coevo.envs.registry import find
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.bank import Bank
from coevo.tasks.publish.catchup import publish_now
from coevo.tasks.publish.reporter import Silent
from coevo.utilities.errors import CoevoError

MAX_ENTRIES = 20_000
"""Most entries that a command publishes by itself, summed over revisions: about a second."""
MIN_REVISION_ENTRIES = 1_000
"""Least entries that a revision counts as, for its points and tags."""


class Aloud(Silent):
    """Reporter that prints only warnings, to standard error."""

    def warn(self, text: str) -> None:
        """Print the warning as one line."""
        typer.echo(f"coevo: {text}", err=True)


def complete(workspace: Workspace, paths: RunPaths) -> None:
    """Recover a finished run as its next session would, publish what is unpublished, and close its MLflow run.

    Raises:
        CoevoError: another process writes to the run, its last revision cannot be restored, or its cursor is wrong.
    """
    bank = Bank(paths.bank)
    with writer_lock(paths), Lineage.open(paths.lineage, workspace.cache) as lineage:
        lineage.recover(bank)
        paths.clear_staging()
        cursor = Cursor(paths.published)
        if cursor.is_open() or cursor.unpublished(lineage):
            publish_committed(workspace, paths, lineage, bank)


def publish(workspace: Workspace, paths: RunPaths) -> None:
    """Publish the committed revisions of a run that no process writes to, as ``publish_if_quick``."""
    with writer_lock(paths), Lineage.open(paths.lineage, workspace.cache) as lineage:
        publish_if_quick(workspace, paths, lineage, Bank(paths.bank))


def publish_if_quick(workspace: Workspace, paths: RunPaths, lineage: Lineage, bank: Bank) -> None:
    """Publish committed revisions, or report that the next resume does: a command must not wait for a long history."""
    waiting = len(Cursor(paths.published).unpublished(lineage))
    if waiting * max(bank.size(), MIN_REVISION_ENTRIES) <= MAX_ENTRIES:
        publish_committed(workspace, paths, lineage, bank)
    else:
        left = "1 revision is" if waiting == 1 else f"{waiting} revisions are"
        typer.echo(f"{left} not published yet: `coevo resume` publishes the rest")


def publish_committed(workspace: Workspace, paths: RunPaths, lineage: Lineage, bank: Bank) -> None:
    """Publish committed revisions to MLflow; a failure is a warning, and the next resume publishes them."""
    reporter = Aloud()
    try:
        workspace.trust.demand(paths.name, paths.read_config())
        experiment = find(paths.read_config().env.type).name
        publish_now(paths, bank, lineage, experiment, reporter)
    except CoevoError as error:
        reporter.warn(f"not published: {error}; `coevo resume` publishes the rest")
