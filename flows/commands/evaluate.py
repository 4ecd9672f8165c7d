"""``coevo evaluate``."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows import output
from flows.settings import JsonOption, TrustOption, WorkspaceOption, workspace_at
from lineage.workspace import Workspace

if TYPE_CHECKING:
    from flows.evaluate import Evaluation, Request


def evaluate(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, and revision; the last one where none is given.")],
    panel: Annotated[str, typer.Option(help="Panel that is played.")] = "seen-houses",
    tasks: Annotated[int | None, typer.Option(min=1, help="Tasks of the panel; as in the run where not given.")] = None,
    bank: Annotated[
        str,
        typer.Option(help="own; none, what the policy knows by itself; random entries; or OTHER[@M], what transfers."),
    ] = "own",
    discovery: Annotated[
        int, typer.Option(min=0, metavar="K", help="Attempts at each task, each told what the failed ones taught.")
    ] = 0,
    through: Annotated[str | None, typer.Option(help="URL of `coevo serve`: the agent there plays instead.")] = None,
    trust: TrustOption = None,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Play a held-out panel with a run's policy; the bank is read-only, and the run is left as it is.

    Shows success over all tasks and for each type of task. With --discovery K also the share of tasks that are solved
    within 1 to K attempts; what is written between them is the task's alone and is forgotten.

    Example: coevo evaluate homerules-coevo-rl-1@20 --panel seen-houses --bank none
    """
    from flows.evaluate import Request
    from flows.trust import trust_revision

    place = workspace_at(workspace)
    trust_revision(place, run, trust, ask=not as_json)
    result = _played(run, Request(panel, tasks, bank, discovery), through, place)
    row = {"run": run, "panel": panel, "bank": bank, **_figures(result), "panel_hash": result.panel.hash[:16]}
    kinds = [{"type": kind, **_figures(part)} for kind, part in result.by_kind().items()]
    attempts = [{"attempts": number, "solved": share} for number, share in result.discovery.items()]
    if as_json:
        found = {str(number): share for number, share in result.discovery.items()}
        output.document(row | {"types": kinds, "discovery": found})
        return
    output.table([row], tuple(row))
    for rows in (kinds, attempts):
        if rows:
            output.line()
            output.table(rows, tuple(rows[0]))


def _figures(result: "Evaluation") -> dict[str, Any]:
    return {"tasks": len(result.episodes), "success": result.success, "stderr": result.stderr}


def _played(run: str, request: "Request", through: str | None, place: Workspace) -> "Evaluation":
    if through is None:
        from flows.evaluate import evaluate_revision

        return evaluate_revision(run, request, place)
    from flows.serving import evaluate_through

    return evaluate_through(through, run, request, place)


COMMANDS = (evaluate,)
