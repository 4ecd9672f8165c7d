"""``coevo report``."""

from pathlib import Path
from typing import Annotated

import typer

from configs.errors import CoevoError
from flows import output
from flows.reference import reading
from flows.settings import JsonOption, WorkspaceOption, workspace_at
from lineage.files import write_atomically


def report(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, and its last revision to tell of.")],
    file: Annotated[
        Path | None, typer.Option("--output", help="The file; <workspace>/reports/<run>.html without it.")
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Write what became of a run as one HTML file, which loads nothing from anywhere.

    Success and reward by panel, lineage with rollbacks and branches, how each entry of the bank has lived, what replay
    said of candidates, the spread of advantages, seconds a stage, and the entries with the highest and the lowest
    success when shown, with their stories. A report that is there is replaced.

    Example: coevo report homerules-coevo-rl-1 --open
    """
    from flows.report.facts import facts
    from flows.report.page import page

    place = workspace_at(workspace)
    with reading(run, place) as opened:
        told = facts(opened, place)
        target = (file or place.root / "reports" / f"{opened.paths.name}.html").absolute()
    text = page(told)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, text)
    except (OSError, ValueError) as error:
        raise CoevoError(f"--output {file}: {error}: name a file that can be written") from None
    if as_json:
        output.document({"run": told.name, "file": str(target), "bytes": len(text.encode())})
    else:
        output.line(f"{target} tells of {told.name}, in {len(text.encode()) / 1024:,.0f} KiB.")
    if open_page:
        typer.launch(target.as_uri())


COMMANDS = (report,)
