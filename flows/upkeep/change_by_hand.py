"""Changes of a run's bank by hand, which make a new revision: an entry is retired, or entries are imported."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coevo.flows.history.revision_reference import find_entry, reading
from coevo.flows.upkeep.publishing import publish_if_quick
from coevo.lineage.atomic_files import check_file_system
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.exchange.exchange import read_entries
from coevo.records.entry import Entry
from coevo.tasks.run.by_hand import import_entries, retire_entry


@contextmanager
def changing(paths: RunPaths, workspace: Workspace) -> Iterator[tuple[Bank, Lineage]]:
    """Lock and recover a run for a change; publish what is committed at the end of the block.

    Raises:
        CoevoError: another process writes to the run, its cursor is wrong, or its file system lacks what runs need.
    """
    check_file_system(paths.root)
    with writer_lock(paths), Lineage.open(paths.lineage, workspace.cache) as lineage:
        bank = Bank(paths.bank)
        lineage.recover(bank)
        # With a cursor ahead of the history, the new revision would count as published.
        Cursor(paths.published).check(lineage)
        yield bank, lineage
        publish_if_quick(workspace, paths, lineage, bank)


def retire(run: str, entry: str, reason: str, by: str, workspace: Workspace) -> tuple[Entry, Manifest | None]:
    """Retire an entry of a run, named by its id or the beginning of it, and publish the revision.

    Returns:
        The entry afterwards, and the new revision; None if it was already retired.

    Raises:
        CoevoError: the run or entry does not exist, reason or name is not valid, another process writes to the run, the
            run is pending approval, or its cursor is wrong.
    """
    paths = workspace.existing(run)
    with reading(run, workspace) as opened:
        entry = find_entry(entry, {each.id: each.strategy for each in opened.bank().entries()})
    with changing(paths, workspace) as (bank, lineage):
        return retire_entry(entry, reason, by, paths, bank, lineage)


def import_file(run: str, file: Path, workspace: Workspace) -> tuple[int, Manifest | None]:
    """Add the entries of a file to the bank of a run, and publish the revision.

    Returns:
        The number of entries in the file, and the new revision; None if the bank held them all.

    Raises:
        CoevoError: the run does not exist or has no bank, the file or one of its rows is not valid, another process
            writes to the run, or its cursor is wrong.
    """
    paths = workspace.existing(run)
    with reading(run, workspace) as opened:
        opened.bank()
    incoming = read_entries(file)
    with changing(paths, workspace) as (bank, lineage):
        return len(incoming.rows), import_entries(incoming, paths, bank, lineage)
