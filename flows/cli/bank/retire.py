"""``coevo bank retire``."""

from getpass import getuser
from typing import Annotated

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, resuming, workspace_at, workspace_option


def retire(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    entry: Annotated[str, typer.Argument(metavar="ENTRY", help="Id of an entry, its beginning, or its lesson.")],
    reason: Annotated[str, typer.Option(help="Reason in one line; stored with the entry.")],
    by: Annotated[str | None, typer.Option("--by", help="Name of the person; by default the login name.")] = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Take an entry out of the bank, as a new revision.

    The policy does not see the entry any more, and training does not admit the same lesson again. Its history stays:
    `coevo bank why` and `coevo bank log` show who retired it and why. `coevo rollback` undoes the retirement.

    Example: coevo bank retire homerules-coevo-rl-1 3f2a9c01b7de --reason "asks for rm -rf"
    """
    from coevo.flows.upkeep.change_by_hand import retire as take_out

    workspace = workspace_at(directory)
    gone, made = take_out(run, entry, reason, by or getuser(), workspace)
    if made is None:
        said = f"{gone.id} was already retired in revision {gone.retired}; nothing was changed."
        output.result(as_json, {"entry": gone.id, "revision": None}, said)
        return
    again = resuming(run, made.iteration, workspace.run(run).read_config().iterations, workspace)
    undo = f"coevo rollback {run} --to {made.revision - 1}{workspace_option(workspace)}"
    output.result(
        as_json,
        {"entry": gone.id, "revision": f"{run}@{made.revision}"},
        f"{run}@{made.revision}: retired {gone.id}  {gone.strategy}",
        f"Continue with: {again}; undo with: {undo}",
    )
