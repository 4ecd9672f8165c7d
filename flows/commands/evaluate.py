"""``coevo evaluate``."""

from typing import Annotated

import typer

from flows import output
from flows.settings import JsonOption, WorkspaceOption, workspace_at


def evaluate(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, and revision; the last one where none is given.")],
    panel: Annotated[str, typer.Option(help="Panel that is played.")] = "seen-houses",
    tasks: Annotated[int | None, typer.Option(min=1, help="Tasks of the panel; as in the run where not given.")] = None,
    bank: Annotated[str, typer.Option(help="own, none, random, or OTHER[@M]: the bank that is read.")] = "own",
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Play a held-out panel with a run's policy; the bank is read-only, and the run is left as it is.

    Example: coevo evaluate homerules-coevo-rl-1@20 --panel seen-houses --bank none
    """
    from flows.evaluate import evaluate_revision

    result = evaluate_revision(run, panel, tasks, bank, workspace_at(workspace))
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


COMMANDS = (evaluate,)
