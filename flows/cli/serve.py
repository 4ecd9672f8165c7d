"""Servers of the workspace: ``coevo ui`` and ``coevo down``."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, workspace_at, workspace_option
from coevo.lineage.workspace import Workspace


def ui(
    open_pages: Annotated[bool, typer.Option("--open", help="Open the pages in a browser.")] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Show a finished run that ships with coevo, in <workspace>/sample.")
    ] = False,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Print the addresses of the Prefect and MLflow pages, and of the live pages of all runs.

    Starts their servers if they are not running. The sample has servers of its own. A link works once; the browser that
    opened it keeps access. The MLflow page shows the newest environment's runs with success, bank size, seed, recipe.
    The pages show runs whose process was killed as crashed from now on.

    Example: coevo ui --open
    """
    from coevo.flows.history.run_summaries import faults, run_summaries
    from coevo.flows.servers.end_state import name_crashed
    from coevo.flows.servers.servers import mlflow_pages, page_to, prefect_pages
    from coevo.flows.servers.visits import LINK, OPEN_WITHIN
    from coevo.flows.watch.watch_server import live_pages
    from coevo.tasks.publish.reporter import in_stage

    root = workspace_at(workspace).root
    if sample:
        root = _sample(root, as_json)
    with in_stage("starts the servers of Prefect, MLflow and the live pages"), ThreadPoolExecutor() as starting:
        makers = {"Prefect": prefect_pages, "MLflow": mlflow_pages, "Watch": live_pages}
        begun = {name: starting.submit(make, root) for name, make in makers.items()}
    pages = {name: each.result() for name, each in begun.items()}
    for name, url in pages.items():
        if open_pages:
            typer.launch(page_to(url, root, name.lower()) if LINK in url else url)
    links = any(LINK in url for url in pages.values())
    within = f"A link works once, within {OPEN_WITHIN / 60:.0f} minutes; this command prints new ones."
    problems = [*name_crashed(Workspace(root)), *faults(run_summaries(Workspace(root)))]
    output.result(
        as_json,
        {**{name.lower(): url for name, url in pages.items()}, "workspace": str(root), "problems": problems},
        *(f"{name:8}{url}" for name, url in pages.items()),
        *([within] if links else []),
        *problems,
        f"Stop them with: coevo down{f' --workspace {root}' if sample else ''}",
    )


def watch(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Print a link to the live page of a run, which shows it while it trains and afterwards.

    Starts the page's server if it is not running; `coevo down` stops it. It listens on this machine alone. The link
    works once; the browser that opened it keeps access. The pages change nothing, except that they decide about a
    pending admission and retire an entry, with the token that this command prints.

    Example: coevo watch homerules-coevo-rl-1 --open
    """
    from coevo.flows.servers.servers import new_link, page_to
    from coevo.flows.watch.watch_server import ensure_watch, token_of

    workspace = workspace_at(directory)
    name = workspace.existing(run).name
    url, secret = ensure_watch(workspace.root)
    link = f"{new_link(url, secret, 'page')}#{name}"
    output.result(
        as_json,
        {"run": name, "url": link, "token": token_of(secret)},
        link,
        f"Token for decisions and retirements: {token_of(secret)}",
        f"A link works once; stop the server with: coevo down{workspace_option(workspace)}",
    )
    if open_page:
        typer.launch(page_to(link, workspace.root, "watch"))


def _sample(root: Path, as_json: bool) -> Path:
    """Workspace of the sample, published to its pages."""
    from coevo.flows.sample import RUN
    from coevo.flows.sample.open_sample import open_sample
    from coevo.tasks.publish.reporter import in_stage

    with in_stage("unpacks the sample and publishes it"):
        found = open_sample(root).root
    if not as_json:
        output.line(f"Its run: coevo log {RUN} --workspace {found}, also report, bank log, bank show, bank why")
        output.line("The sample has no weights: it can be inspected, not resumed.")
    return found


def down(as_json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Stop the servers of the workspace.

    Example: coevo down
    """
    from coevo.flows.servers.daemon import down as stop
    from coevo.tasks.publish.reporter import in_stage

    root = workspace_at(workspace).root
    with in_stage("stops the servers"):
        stopped = stop(root)
    said = f"Stopped {' and '.join(stopped)}." if stopped else f"No server of {root} was running."
    output.result(as_json, {"workspace": str(root), "stopped": list(stopped)}, said)


COMMANDS = (ui, watch, down)
