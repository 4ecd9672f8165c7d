"""``coevo evaluate``."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, TrustOption, WorkspaceOption, with_option_groups, workspace_at
from coevo.lineage.workspace import Workspace

if TYPE_CHECKING:
    from coevo.flows.evaluation import Evaluation, EvaluationRequest

HASH, SHOWN = 16, 8
"""Characters of a panel's hash in JSON, and in the table, which has 80 columns."""


@dataclass(frozen=True)
class EvaluationOptions:
    """``EvaluationRequest`` as options; its module takes too long to import for `--help`."""

    panel: Annotated[str | None, typer.Option(help="Panel to play; by default the run's first.")] = None
    tasks: Annotated[int | None, typer.Option(min=1, help="Tasks of the panel; by default as in the run.")] = None
    bank: Annotated[
        str,
        typer.Option(help="own; none (policy alone); random (random entries); or OTHER[@M], the bank of another run."),
    ] = "own"
    discovery: Annotated[
        int, typer.Option(min=0, metavar="K", help="Attempts per task, with lessons from the failed ones.")
    ] = 0


@with_option_groups
def evaluate(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, and revision; by default the last one.")],
    options: EvaluationOptions,
    endpoint: Annotated[str | None, typer.Option(help="URL of a `coevo serve`; its agent plays instead.")] = None,
    trust: TrustOption = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Evaluate a run on a held-out panel.

    The bank is read-only, and the run does not change. Shows success over all tasks and per type of task, and the
    Vendi score of successes and failures: the effective number of different trajectories. With --discovery K, also
    shows the share of tasks that are solved within 1 to K attempts; a lesson written between attempts enters without
    a replay, serves its own task only and is discarded.

    Example: coevo evaluate homerules-coevo-rl-1@20 --panel seen-houses --bank none
    """
    from coevo.flows.console.trust_prompt import trust_revision
    from coevo.flows.evaluation import EvaluationRequest

    workspace = workspace_at(directory)
    trust_revision(workspace, run, trust, ask=not as_json)
    request = EvaluationRequest(options.panel, options.tasks, options.bank, options.discovery)
    result = _played(run, request, endpoint, workspace)
    lost = any(episode.lost for episode in result.episodes)
    row = {"run": run, "panel": result.panel.name, "bank": request.bank, **_figures(result, lost)}
    row["panel_hash"] = result.panel.hash[:HASH]
    kinds = [{"type": kind, **_figures(part, lost)} for kind, part in result.by_kind().items()]
    attempts = [{"attempts": number, "solved": share} for number, share in result.discovery.items()]
    vendi = [{"trajectories": side, "vendi": score} for side, score in result.vendi.items()]
    if as_json:
        shares = {str(number): share for number, share in result.discovery.items()}
        output.document(row | {"types": kinds, "discovery": shares, "vendi": dict(result.vendi)})
        return
    _print([row | {"panel_hash": row["panel_hash"][:SHOWN]}], kinds, attempts, vendi)


def _print(*tables: list[dict[str, Any]]) -> None:
    """Print tables that have rows, with blank lines between them."""
    for number, rows in enumerate(filter(None, tables)):
        if number:
            output.line()
        output.table(rows, tuple(rows[0]))
    output.line("stderr: over tasks; another seed may differ by more")


def _figures(result: "Evaluation", lost: bool) -> dict[str, Any]:
    """Figures of a row, with the number of lost episodes if the table has it; success is None if all were lost."""
    count = sum(bool(episode.lost) for episode in result.episodes)
    success, stderr = (None, None) if count == len(result.episodes) else (result.success, result.stderr)
    return {"tasks": len(result.episodes), "success": success, "stderr": stderr} | ({"lost": count} if lost else {})


def _played(run: str, request: "EvaluationRequest", endpoint: str | None, workspace: Workspace) -> "Evaluation":
    from coevo.flows.console.progress import shown
    from coevo.flows.evaluate_revision import evaluate_revision
    from coevo.flows.packages.evaluate_endpoint import evaluate_endpoint
    from coevo.tasks.publish.reporter import reporting_to

    with shown(output.console(stderr=True), 0, is_aside=True) as progress, reporting_to(progress):
        if endpoint is None:
            return evaluate_revision(run, request, workspace)
        return evaluate_endpoint(endpoint, run, request, workspace)


COMMANDS = (evaluate,)
