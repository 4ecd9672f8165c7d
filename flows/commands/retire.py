"""``coevo bank retire``."""

from getpass import getuser
from typing import Annotated

import typer

from flows import output
from flows.settings import WorkspaceOption, workspace_at


def retire(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    entry: Annotated[str, typer.Argument(help="Id of the entry, see `coevo bank show`.")],
    reason: Annotated[str, typer.Option(help="Why, in one line; it is kept with the entry.")],
    by: Annotated[str | None, typer.Option("--by", help="Who decides; the login name where this is left out.")] = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Take an entry out of the bank, as a new revision.

    It is not shown to the policy any more, and the same lesson does not enter again by itself. Its history stays:
    `coevo bank why` and `coevo bank log` show who retired it and why. `coevo rollback` takes the retirement back.

    Example: coevo bank retire homerules-coevo-rl-1 3f2a9c01b7de --reason "asks for rm -rf"
    """
    from flows.retire import retire as take_out

    gone, made = take_out(run, entry, reason, by or getuser(), workspace_at(workspace))
    if made is None:
        output.line(f"{gone.id} was retired in revision {gone.retired} already; nothing has changed.")
        return
    output.line(f"{run}@{made} holds no longer: {gone.id}  {gone.strategy}")
    output.line(f"Continue without it: coevo resume {run}; undo with: coevo rollback {run} --to {made - 1}")
