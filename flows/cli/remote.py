"""``coevo push`` and ``coevo pull``: copies of runs at a remote."""

from collections.abc import Callable, Collection
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, workspace_at
from coevo.flows.console.output import Bars, bars
from coevo.flows.history.run_summaries import faults, run_summaries
from coevo.flows.remote_run import open_bank
from coevo.lineage.trust import described
from coevo.lineage.workspace import Workspace
from coevo.tasks.publish.reporter import in_stage
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.lineage.remote.push import Transferred
    from coevo.lineage.remote.remote_store import Store

    Transfer = Callable[[str, Bars], Transferred]

RemoteArgument = Annotated[str, typer.Argument(help="Local path, or s3://BUCKET/PREFIX.")]


def push(
    remote: RemoteArgument,
    runs: Annotated[list[str] | None, typer.Argument(metavar="[RUN ...]", help="Runs; by default all.")] = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Copy runs to a remote, for other machines to pull.

    Sends only files that the remote lacks. A run may be running during the push. For S3, endpoint, region and keys come
    from the usual environment variables, such as AWS_ENDPOINT_URL and AWS_ACCESS_KEY_ID.

    Example: coevo push /mnt/backup/coevo homerules-coevo-rl-1
    """
    from coevo.lineage.remote.push import push as send
    from coevo.lineage.remote.remote_address import to_push

    workspace = workspace_at(directory)
    found = [] if runs else run_summaries(workspace)
    paths = [workspace.existing(name) for name in runs] if runs else [one.paths for one in found if one.revisions]
    faulty = faults(found)
    if not paths and not faulty:
        raise CoevoError(f"{workspace.root} has no run to push: name another directory with --workspace")
    with in_stage("looks at the remote"):
        store = to_push(remote)
    by_name = {run.name: run for run in paths}
    moved = _each(
        by_name, lambda name, meter: send(by_name[name], workspace.cache, store, open_bank, meter), as_json, "sent"
    )
    if as_json:
        output.document([_row(found) for found in moved.values()])
    if faulty:
        raise CoevoError(f"not pushed, cannot be read: {'; '.join(faulty)}")
    _complete(moved, by_name)


def pull(
    remote: RemoteArgument,
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN ...]", help="Runs; by default all at the remote.")
    ] = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Copy runs from a remote, to continue them here.

    A run that exists here must be an older copy of the run at the remote. All files are verified by their hashes. Lists
    the settings of a run that can start a program, import code or reach a network; `coevo resume` asks to confirm them.
    If one run is refused, the others are still copied.

    Example: coevo pull s3://team-bucket/coevo homerules-coevo-rl-1
    """
    from coevo.lineage.remote.remote_address import to_pull

    workspace = workspace_at(directory)
    with in_stage("looks at the remote"):
        store = to_pull(remote)
        names = _wanted(runs, workspace, store)
    moved = _each(names, lambda name, meter: _pull(name, workspace, store, meter), as_json, "fetched")
    asked = {name: workspace.trust.open_questions(name, workspace.existing(name).read_config()) for name in moved}
    if as_json:
        rows = [(_row(found), asked[name]) for name, found in moved.items()]
        output.document([{**row, "to_confirm": [each._asdict() for each in settings]} for row, settings in rows])
    for name, settings in asked.items() if not as_json else ():
        for setting in settings:
            output.line(f"{name}: confirm before use: {described(setting)}")
    _complete(moved, names)


def _wanted(runs: list[str] | None, workspace: Workspace, store: "Store") -> list[str]:
    from coevo.lineage.remote.remote_address import runs_at

    names = runs or runs_at(store)
    if not names:
        raise CoevoError(f"remote {store.label}: it has no runs: push one first")
    return [workspace.run(name).name for name in names]


def _pull(name: str, workspace: Workspace, store: "Store", meter: Bars) -> "Transferred":
    from coevo.lineage.remote.pull import pull as fetch

    return fetch(name, workspace, store, open_bank, meter)


def _each(names: Collection[str], transfer: "Transfer", as_json: bool, done: str) -> dict[str, "Transferred"]:
    """Transfer the runs; of several runs, each that fails is one line on standard error."""
    moved = {}
    for name in names:
        try:
            with bars(name) as meter:
                moved[name] = transfer(name, meter)
        except CoevoError as error:
            if len(names) == 1:
                raise
            output.fault(f"{name}: {error}")
        else:
            if not as_json:
                output.line(_sentence(moved[name], done))
    return moved


def _complete(moved: Collection[str], names: Collection[str]) -> None:
    if len(moved) < len(names):
        raise typer.Exit(2)


def _row(found: "Transferred") -> dict[str, object]:
    return {"run": found.run, "before": found.before, "revision": found.revision, **asdict(found.moved)}


def _sentence(found: "Transferred", done: str) -> str:
    if not found.moved.files:
        return f"{found.run}@{found.revision}: up to date, no files {done}."
    return f"{found.run}@{found.revision}: {found.moved.files} files, {decimal(found.moved.size)} {done}."


COMMANDS = (push, pull)
