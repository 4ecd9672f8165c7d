"""``coevo evaluate``."""

from typing import TYPE_CHECKING, Annotated

import typer

from configs.errors import CoevoError
from flows import output
from flows.settings import JsonOption, WorkspaceOption, workspace_at
from lineage.workspace import Workspace

if TYPE_CHECKING:
    from flows.evaluate import Evaluation


def evaluate(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, and revision; the last one where none is given.")],
    panel: Annotated[str, typer.Option(help="Panel that is played.")] = "seen-houses",
    tasks: Annotated[int | None, typer.Option(min=1, help="Tasks of the panel; as in the run where not given.")] = None,
    bank: Annotated[str, typer.Option(help="own, none, random, or OTHER[@M]: the bank that is read.")] = "own",
    through: Annotated[str | None, typer.Option(help="URL of `coevo serve`: the agent there plays instead.")] = None,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Play a held-out panel with a run's policy; the bank is read-only, and the run is left as it is.

    Example: coevo evaluate homerules-coevo-rl-1@20 --panel seen-houses --bank none
    """
    result = _played(run, panel, tasks, bank, through, workspace_at(workspace))
    row = {
        "run": run,
        "panel": panel,
        "bank": bank,
        "tasks": len(result.episodes),
        "success": result.success,
        "stderr": result.stderr,
        "panel_hash": result.panel.hash[:16],
    }
    if as_json:
        output.document(row)
    else:
        output.table([row], tuple(row))


def _played(run: str, panel: str, tasks: int | None, bank: str, through: str | None, place: Workspace) -> "Evaluation":
    if through is None:
        from flows.evaluate import evaluate_revision

        return evaluate_revision(run, panel, tasks, bank, place)
    if bank != "own":
        raise CoevoError(f"--bank {bank}: an agent that is served has its own bank; leave out --bank or --through")
    from flows.serving import evaluate_through

    return evaluate_through(through, run, panel, tasks, place)


COMMANDS = (evaluate,)
