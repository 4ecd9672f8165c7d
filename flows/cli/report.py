"""``coevo report``."""

from pathlib import Path
from typing import Annotated

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, workspace_at
from coevo.flows.history.revision_reference import reading
from coevo.lineage.atomic_files import write_atomically
from coevo.utilities.errors import CoevoError


def report(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, and the last revision to include.")],
    file: Annotated[
        Path | None, typer.Option("--output", help="File to write; by default <workspace>/reports/<run>.html.")
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Write a report of a run as one self-contained HTML file.

    Shows success and reward per panel and kind of task, failures by reason, cost by stage, lineage with rollbacks and
    branches, the lifetime of each bank entry, replay verdicts, the spread of advantages, seconds per stage, and the
    entries with the highest and the lowest success when shown. Replaces an existing report.

    Example: coevo report homerules-coevo-rl-1 --open
    """
    from coevo.flows.report.facts import facts
    from coevo.flows.report.page import page
    from coevo.tasks.publish.reporter import in_stage

    workspace = workspace_at(directory)
    with in_stage("reads the history of the run"), reading(run, workspace) as opened:
        found = facts(opened, workspace)
        target = (file or workspace.root / "reports" / f"{opened.paths.name}.html").absolute()
    with in_stage("writes the page"):
        text = page(found)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, text)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise CoevoError(f"{target} cannot be written ({reason}): name another file with --output FILE") from None
    if as_json:
        output.document({"run": found.name, "file": str(target), "bytes": len(text.encode())})
    else:
        output.line(f"Wrote {target} ({len(text.encode()) / 1024:,.0f} KiB)")
    if open_page:
        typer.launch(target.as_uri())


COMMANDS = (report,)
