"""``coevo bank test``: held-out success with and without one lesson."""

from dataclasses import asdict
from typing import Annotated

import typer

from coevo.flows.cli.explain import PanelOptions
from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, TrustOption, WorkspaceOption, with_option_groups, workspace_at
from coevo.utilities.errors import counted


@with_option_groups
def test(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, or one of its revisions.")],
    entry: Annotated[str, typer.Argument(metavar="ENTRY", help="Id of an entry, its beginning, or its lesson.")],
    played: PanelOptions,
    trust: TrustOption = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Play a held-out panel with a lesson in the bank and without it, on the same tasks and draws.

    Nothing changes in the run. `readers`: tasks whose prompts held the lesson. On the others both sides are equal.

    Example: coevo bank test homerules-coevo-rl-1 3f2a9c01b7de
    """
    from coevo.flows.console.progress import shown
    from coevo.flows.console.trust_prompt import trust_revision
    from coevo.flows.evaluation.attribution import entry_effect
    from coevo.flows.evaluation.panel_evaluation import EvaluationRequest
    from coevo.tasks.publish.reporter import reporting_to

    workspace = workspace_at(directory)
    trust_revision(workspace, run, trust, ask=not as_json)
    with shown(output.console(stderr=True), 0, is_aside=True) as progress, reporting_to(progress):
        found = entry_effect(run, entry, EvaluationRequest(played.panel, played.tasks), workspace)
    if as_json:
        output.document(asdict(found))
        return
    output.line(f"{found.reference}, {found.panel}: {found.entry.strategy}")
    output.line(f"success {found.success:.3f} with it, {found.without:.3f} without it, over {found.tasks} tasks")
    output.line(f"difference {found.difference}")
    among = "nothing to compare" if found.among_readers is None else str(found.among_readers)
    if found.readers == 1:  # the difference over all tasks is its own, since the others are equal
        among = f"{found.difference.mean * found.tasks:+.0f}, too few for an interval"
    output.line(f"among {counted(found.readers, 'reader')}: {among}")
