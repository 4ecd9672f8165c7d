"""``coevo tag``."""

from typing import Annotated

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, workspace_at
from coevo.flows.history.revision_reference import Reference, reading
from coevo.lineage.lock import runs_lock
from coevo.utilities.errors import CoevoError


def tag(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, and revision; by default the last one.")],
    name: Annotated[str, typer.Argument(help="Name of the tag: letters, digits, '.', '_' and '-'.")],
    delete: Annotated[bool, typer.Option("--delete", help="Remove the tag.")] = False,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Name a revision, and keep `coevo gc` from dropping it.

    The run may be running. `coevo log` shows the tags.

    Example: coevo tag homerules-coevo-rl-1@20 best
    """
    workspace = workspace_at(directory)
    with reading(run, workspace) as opened, runs_lock(workspace.root):
        if not delete:
            opened.lineage.tags.add(name, opened.lineage.history.require(opened.manifest.revision))
            output.result(as_json, {"tag": name, "revision": opened.name}, f"Tagged {opened.name} as {name}.")
            return
        held, wanted = opened.lineage.history.names().get(name), Reference.parse(run).number(opened.lineage)
        if wanted is not None and held not in (None, wanted):
            raise CoevoError(
                f"tag {name!r} is on revision {held}, not {wanted}: coevo tag {opened.paths.name} {name} --delete"
            )
        opened.lineage.tags.delete(name)
        place = f"{opened.paths.name}{'' if held is None else f'@{held}'}"
        output.result(as_json, {"tag": None, "revision": place}, f"Removed tag {name} from {place}.")


COMMANDS = (tag,)
