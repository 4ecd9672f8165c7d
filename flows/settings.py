"""Options that every command shares."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from lineage.workspace import Workspace

VARIABLE = "COEVO_WORKSPACE"
WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", envvar=VARIABLE, show_default="workspace", help="Where runs live."),
]
TrustOption = Annotated[
    str | None,
    typer.Option("--trust", metavar="NAME,...", help="Settings of a run from elsewhere that coevo may act on."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, and nothing else.")]


def workspace_of(directory: Path | str | None) -> Workspace:
    """The workspace that a function of the Python API works in."""
    return Workspace(Path(directory or os.environ.get("COEVO_WORKSPACE") or "workspace"))


def workspace_at(directory: Path | None) -> Workspace:
    """The workspace that a command works in."""
    return Workspace(directory or Path("workspace"))


@contextmanager
def standing_in(directory: Path) -> Iterator[None]:
    """Work within in a workspace where a command names none: that of an option before the command."""
    earlier = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(directory.absolute())
    try:
        yield
    finally:
        if earlier is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = earlier
