"""``coevo rollback``."""

from typing import Annotated

import typer

from flows import output
from flows.reference import reading
from flows.settings import WorkspaceOption, workspace_at
from lineage.lineage import Lineage
from lineage.lock import writer_lock
from lineage.manifest import Manifest


def rollback(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    to: Annotated[int, typer.Option(min=0, help="Revision whose state is restored.")],
    workspace: WorkspaceOption = None,
) -> None:
    """Go back to an earlier revision.

    Its policy, optimizer and bank become a new revision: history stays, and going forward again is the same command.

    Example: coevo rollback homerules-coevo-rl-1 --to 3
    """
    place = workspace_at(workspace)
    paths = place.existing(run)
    with reading(f"{run}@{to}", place):
        pass
    from flows.publishing import publish_if_quick
    from memory.store import Bank

    with writer_lock(paths), Lineage.open(paths.lineage, place.cache) as lineage:
        bank = Bank(paths.bank)
        made = lineage.rollback(to, bank)
        entries = bank.size()
        output.line(_said(run, to, made, entries))
        publish_if_quick(place, paths, lineage, bank)
    output.line(f"Continue from there with: coevo resume {run}")


def _said(run: str, to: int, made: Manifest, entries: int) -> str:
    kept = ", ".join(sorted(name for name in made.artifacts if name != "episodes"))
    return f"{run}@{made.revision} is revision {to} again: iteration {made.iteration}, {kept}, {entries} entries."


COMMANDS = (rollback,)
