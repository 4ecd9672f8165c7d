"""Publishing for commands that commit a revision without running the loop."""

import typer

from configs.errors import CoevoError
from envs.registry import find
from lineage.cursor import Cursor
from lineage.lineage import Lineage
from lineage.lock import writer_lock
from lineage.workspace import RunPaths, Workspace
from memory.store import Bank
from tasks.catchup import publish_now
from tasks.report import Silent

AT_ONCE = 20_000
"""Entries that a command may publish on the side, those of all revisions together: about a second."""
LEAST = 1_000
"""Entries that a revision counts as at least, for its points and tags."""


class Aloud(Silent):
    """Tells only what did not go as it should, on standard error."""

    def warn(self, text: str) -> None:
        """One line."""
        typer.echo(f"coevo: {text}", err=True)


def publish_the_rest(place: Workspace, paths: RunPaths) -> None:
    """Publish what a finished run could not, and close its MLflow run.

    Raises:
        CoevoError: another process writes to the run, or its cursor is wrong.
    """
    with writer_lock(paths), Lineage.open(paths.lineage, place.cache) as lineage:
        cursor = Cursor(paths.published)
        if cursor.is_open() or cursor.unpublished(lineage):
            publish_committed(place, paths, lineage, Bank(paths.bank))


def publish_if_quick(place: Workspace, paths: RunPaths, lineage: Lineage, bank: Bank) -> None:
    """Publish what is committed, or say that the next resume does: a command must not take as long as a history is."""
    waiting = len(Cursor(paths.published).unpublished(lineage))
    if waiting * max(bank.size(), LEAST) <= AT_ONCE:
        publish_committed(place, paths, lineage, bank)
    else:
        left = "1 revision is" if waiting == 1 else f"{waiting} revisions are"
        typer.echo(f"{left} not published yet: `coevo resume` publishes what is left")


def publish_committed(place: Workspace, paths: RunPaths, lineage: Lineage, bank: Bank) -> None:
    """Tell MLflow what it has not been told; where that fails a line says so, and the next resume does it."""
    reporter = Aloud()
    try:
        place.trust.demand(paths.name, paths.read_config())
        experiment = find(paths.read_config().env.type).name
        publish_now(place.root, paths, bank, lineage, experiment, reporter)
    except CoevoError as error:
        reporter.warn(f"not published: {error}; `coevo resume` publishes what is left")
