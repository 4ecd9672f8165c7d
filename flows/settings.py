"""Options that every command shares."""

from pathlib import Path
from typing import Annotated

import typer

from lineage.workspace import Workspace

WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", envvar="COEVO_WORKSPACE", show_default="workspace", help="Where runs live."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, and nothing else.")]


def workspace_at(directory: Path | None) -> Workspace:
    """The workspace that a command works in."""
    return Workspace(directory or Path("workspace"))
