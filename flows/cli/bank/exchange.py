"""``coevo bank export`` and ``coevo bank import``."""

from pathlib import Path
from typing import Annotated

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, resuming, workspace_at
from coevo.flows.history.revision_reference import reading


def export(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, or one of its revisions.")],
    file: Annotated[Path, typer.Argument(help="New file: .parquet, .jsonl, or .md for a skill file.")],
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Write the active entries to a file.

    Example: coevo bank export homerules-coevo-rl-1@20 notes.jsonl
    """
    from coevo.memory.exchange.exchange import write_entries

    with reading(run, workspace_at(workspace)) as opened:
        count = write_entries(opened.bank().active(), file)
    document = {"revision": opened.name, "entries": count, "file": str(file)}
    output.result(as_json, document, f"Wrote {count} entries of {opened.name} to {file}.")


def import_(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    file: Annotated[Path, typer.Argument(help="File written by `coevo bank export`.")],
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Add the entries of a file to the bank, as a new revision.

    Entries that the bank already holds are skipped; retired ones become active again. The whole file is rejected if one
    row is invalid, or if its text differs from the bank's entry with the same id.

    Example: coevo bank import homerules-coevo-rl-2 notes.jsonl
    """
    from coevo.flows.upkeep.change_by_hand import import_file

    workspace = workspace_at(directory)
    count, made = import_file(run, file, workspace)
    if made is None:
        said = f"{run} already holds all {count} entries of {file}; nothing was changed."
        output.result(as_json, {"revision": None, "added": 0, "known": count}, said)
        return
    counts, name = made.state["imported"], f"{run}@{made.revision}"
    total = workspace.run(run).read_config().iterations
    output.result(
        as_json,
        {"revision": name, "added": counts["added"], "known": counts["known"]},
        f"{name}: added {counts['added']} entries, skipped {counts['known']} known ones.",
        f"Continue with: {resuming(run, made.iteration, total, workspace)}",
    )
