"""The workspace's servers: ``coevo ui`` and ``coevo down``."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from flows import output
from flows.settings import WorkspaceOption, workspace_at
from flows.visits import LINK, OPEN_WITHIN
from lineage.workspace import Workspace


def ui(
    open_pages: Annotated[bool, typer.Option("--open", help="Open both in a browser.")] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Show a finished run that came with coevo, in <workspace>/sample.")
    ] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show where the pages of Prefect and MLflow are.

    Their servers are started where they do not run yet. Those of the sample are its own. Prefect's pages open with a
    link that works once; the browser that opens it may come back.

    Example: coevo ui --open
    """
    from flows.prefect_pages import page_to, prefect_pages
    from flows.servers import ensure_mlflow_ui
    from flows.standing import faults, standings

    root = workspace_at(workspace).root
    if sample:
        root = _sample(root)
    with ThreadPoolExecutor() as starting:
        prefect, mlflow = starting.submit(prefect_pages, root), starting.submit(ensure_mlflow_ui, root)
    for name, url in {"Prefect": prefect.result(), "MLflow": mlflow.result()}.items():
        output.line(f"{name:8}{url}")
        if open_pages:
            typer.launch(page_to(url, root) if LINK in url else url)
    if LINK in prefect.result():
        output.line(f"Prefect's link opens once, within {OPEN_WITHIN / 60:.0f} minutes; this command makes another.")
    for fault in faults(standings(Workspace(root))):
        output.line(fault)
    output.line(f"Stop them with: coevo down{f' --workspace {root}' if sample else ''}")


def _sample(root: Path) -> Path:
    """The workspace of the sample, once its pages know of it."""
    from flows.sample import RUN
    from flows.sample.open import open_sample

    found = open_sample(root).root
    output.line(f"Its run: coevo log {RUN} --workspace {found}, and so report, bank log, bank show, bank why ...")
    output.line("Its weights did not come along: it is to be looked at, not to be gone on with.")
    return found


def down(workspace: WorkspaceOption = None) -> None:
    """Stop the servers of the workspace.

    Example: coevo down
    """
    from flows.daemon import down as stop

    root = workspace_at(workspace).root
    stopped = stop(root)
    output.line(f"Stopped {' and '.join(stopped)}." if stopped else f"No server of {root} was running.")


COMMANDS = (ui, down)
