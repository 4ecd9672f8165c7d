"""``coevo rollback``."""

from typing import Annotated

import typer

from flows import output
from flows.reference import reading
from flows.settings import WorkspaceOption, workspace_at


def rollback(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    to: Annotated[str, typer.Option(metavar="N", help="Revision whose state is restored, or its tag.")],
    workspace: WorkspaceOption = None,
) -> None:
    """Go back to an earlier revision.

    Its policy, optimizer and bank become a new revision: history stays, and going forward again is the same command.

    Example: coevo rollback homerules-coevo-rl-1 --to 3
    """
    place = workspace_at(workspace)
    paths = place.existing(run)
    with reading(f"{run}@{to}", place) as there:
        revision = there.manifest.revision
    from flows.restore import restore

    output.line(restore(place, paths, revision))
    output.line(f"Continue from there with: coevo resume {run}")


COMMANDS = (rollback,)
