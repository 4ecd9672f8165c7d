"""``coevo bank export`` and ``coevo bank import``."""

from pathlib import Path
from typing import Annotated

import typer

from flows import output
from flows.reference import reading
from flows.settings import WorkspaceOption, workspace_at
from lineage.lineage import Lineage
from lineage.lock import writer_lock


def export(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="A run, or one of its revisions.")],
    file: Annotated[Path, typer.Argument(help="A new file, .parquet or .jsonl.")],
    workspace: WorkspaceOption = None,
) -> None:
    """Write the active entries to a file.

    Example: coevo bank export homerules-coevo-rl-1@20 notes.jsonl
    """
    from memory.exchange import write_entries

    with reading(run, workspace_at(workspace)) as opened:
        count = write_entries(opened.bank().active(), file)
    output.line(f"{file} holds {count} entries of {opened.name}.")


def import_(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    file: Annotated[Path, typer.Argument(help="A file that `coevo bank export` has written.")],
    workspace: WorkspaceOption = None,
) -> None:
    """Add the entries of a file to the bank, as a new revision.

    Entries that the bank holds already change nothing, retired ones come back. A file with a row that is not
    acceptable, or that says something else than the bank under the same id, is refused as a whole.

    Example: coevo bank import homerules-coevo-rl-2 notes.jsonl
    """
    from memory.exchange import read_entries
    from memory.store import Bank
    from tasks.transfer import import_entries

    place = workspace_at(workspace)
    paths = place.existing(run)
    with reading(run, place) as opened:
        opened.bank()
    incoming = read_entries(file)
    with writer_lock(paths), Lineage.open(paths.lineage, place.cache) as lineage:
        bank = Bank(paths.bank)
        lineage.recover(bank)
        made = import_entries(incoming, paths, bank, lineage)
    if made is None:
        output.line(f"{run} holds all {len(incoming.rows)} entries of {file} already; nothing has changed.")
        return
    told = made.state["imported"]
    output.line(f"{run}@{made.revision} has {told['added']} entries more; {told['known']} of the file it held already.")
    output.line(f"Continue with them: coevo resume {run}")
