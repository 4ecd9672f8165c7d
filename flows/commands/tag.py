"""``coevo tag``."""

from typing import Annotated

import typer

from configs.errors import CoevoError
from flows import output
from flows.reference import Reference, reading
from flows.settings import WorkspaceOption, workspace_at
from lineage.lock import runs_lock


def tag(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, and revision; the last one where none is given.")],
    name: Annotated[str, typer.Argument(help="Letters, digits, '.', '_' and '-'.")],
    delete: Annotated[bool, typer.Option("--delete", help="Take the tag away.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Give a revision a name, which also keeps it from being dropped.

    Works while the run goes on. `coevo log` shows the tags.

    Example: coevo tag homerules-coevo-rl-1@20 best
    """
    place = workspace_at(workspace)
    with reading(run, place) as opened, runs_lock(place.root):
        if not delete:
            opened.lineage.tag(opened.manifest.revision, name)
            output.line(f"{opened.name} is {name}.")
            return
        held, wanted = opened.lineage.names().get(name), Reference.parse(run).number(opened.lineage)
        if wanted is not None and held not in (None, wanted):
            raise CoevoError(
                f"tag {name!r} is on revision {held}, not {wanted}: coevo tag {opened.paths.name} {name} --delete"
            )
        opened.lineage.untag(name)
        output.line(f"{opened.paths.name}{'' if held is None else f'@{held}'} is {name} no longer.")


COMMANDS = (tag,)
