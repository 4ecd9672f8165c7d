"""``coevo push`` and ``coevo pull``: runs at a remote."""

from collections.abc import Callable, Collection
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from configs.errors import CoevoError
from flows import output
from flows.settings import JsonOption, WorkspaceOption, workspace_at
from flows.standing import faults, standings
from flows.transfer import Bars, bars
from lineage.remote.place import runs_at, to_pull, to_push
from lineage.remote.push import Transferred
from lineage.remote.store import Store
from lineage.remote.tables import Bank
from lineage.trust import described
from lineage.workspace import Workspace

RemoteArgument = Annotated[str, typer.Argument(help="A local path, or s3://BUCKET/PREFIX.")]
Transfer = Callable[[str, Bars], Transferred]


def push(
    remote: RemoteArgument,
    runs: Annotated[list[str] | None, typer.Argument(metavar="[RUN ...]", help="All runs without it.")] = None,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Bring runs to a remote, from where another machine can pull them.

    Only what the remote lacks is sent. A run may go on meanwhile. For S3, endpoint, region and keys are taken from the
    usual variables: AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and so on.

    Example: coevo push /mnt/backup/coevo homerules-coevo-rl-1
    """
    from lineage.remote.push import push as send

    place = workspace_at(workspace)
    found = [] if runs else standings(place)
    paths = [place.existing(name) for name in runs] if runs else [one.paths for one in found if one.revisions]
    faulty = faults(found)
    if not paths and not faulty:
        raise CoevoError(f"{place.root} has no run to push: name another directory with --workspace")
    store = to_push(remote)
    by_name = {run.name: run for run in paths}
    moved = _each(
        by_name, lambda name, meter: send(by_name[name], place.cache, store, _open_bank, meter), as_json, "sent"
    )
    if as_json:
        output.document([_row(found) for found in moved.values()])
    if faulty:
        raise CoevoError(f"not pushed, since it cannot be read: {'; '.join(faulty)}")
    _complete(moved, by_name)


def pull(
    remote: RemoteArgument,
    runs: Annotated[list[str] | None, typer.Argument(metavar="[RUN ...]", help="All runs there without it.")] = None,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Bring runs from a remote, to go on with them here.

    A run that is here already must be an older copy of the one there. All that arrives is checked by content. Settings
    of it that can start a program, import code or reach a network are listed: `coevo resume` asks for them. A run that
    is refused stops none of the others.

    Example: coevo pull s3://team-bucket/coevo homerules-coevo-rl-1
    """
    place = workspace_at(workspace)
    store = to_pull(remote)
    names = _wanted(runs, place, store)
    moved = _each(names, lambda name, meter: _pull(name, place, store, meter), as_json, "fetched")
    asked = {name: place.trust.open_questions(name, place.existing(name).read_config()) for name in moved}
    if as_json:
        rows = [(_row(found), asked[name]) for name, found in moved.items()]
        output.document([{**row, "to_confirm": [each._asdict() for each in settings]} for row, settings in rows])
    for name, settings in asked.items() if not as_json else ():
        for setting in settings:
            output.line(f"{name}: to be confirmed before anything acts on it: {described(setting)}")
    _complete(moved, names)


def _wanted(runs: list[str] | None, place: Workspace, store: Store) -> list[str]:
    names = runs or runs_at(store)
    if not names:
        raise CoevoError(f"remote {store.label}: it has no run yet: push one first")
    return [place.run(name).name for name in names]


def _pull(name: str, place: Workspace, store: Store, meter: Bars) -> Transferred:
    from lineage.remote.pull import pull as fetch

    return fetch(name, place, store, _open_bank, meter)


def _each(names: Collection[str], transfer: Transfer, as_json: bool, done: str) -> dict[str, Transferred]:
    """Move the runs that can be; each of several that cannot is a line on standard error."""
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


def _row(found: Transferred) -> dict[str, object]:
    return {"run": found.run, "before": found.before, "revision": found.revision, **asdict(found.moved)}


def _sentence(found: Transferred, done: str) -> str:
    if not found.moved.files:
        return f"{found.run}@{found.revision}: nothing to be {done}."
    return f"{found.run}@{found.revision}: {found.moved.files} files, {decimal(found.moved.size)} {done}."


def _open_bank(path: Path) -> Bank:
    from memory.files import check_enclosed
    from memory.store import Bank as Opened

    check_enclosed(path)
    return Opened(path)


COMMANDS = (push, pull)
