"""Publishing for commands that commit a revision without running the loop."""

import typer

from configs.errors import CoevoError
from envs.registry import find
from lineage.lineage import Lineage
from lineage.workspace import RunPaths, Workspace
from memory.store import Bank
from tasks.catchup import open_publisher
from tasks.report import Silent


class Aloud(Silent):
    """Tells only what did not go as it should, on standard error."""

    def warn(self, text: str) -> None:
        """One line."""
        typer.echo(f"coevo: {text}", err=True)


def publish_committed(place: Workspace, paths: RunPaths, lineage: Lineage, bank: Bank) -> None:
    """Tell MLflow what it has not been told; where that fails a line says so, and the next resume does it."""
    reporter = Aloud()
    try:
        experiment = find(paths.read_config().env.type).name
        with open_publisher(place.root, paths, bank, lineage, experiment, reporter):
            pass
    except CoevoError as error:
        reporter.warn(f"not published: {error}")
