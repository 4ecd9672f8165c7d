"""Taking an entry out of a bank, which makes a new revision."""

from flows.publishing import publish_if_quick
from flows.reference import reading
from lineage.cursor import Cursor
from lineage.lineage import Lineage
from lineage.lock import writer_lock
from lineage.workspace import Workspace
from memory.store import Bank
from records.entry import Entry
from tasks.retire import retire_entry


def retire(run: str, entry: str, reason: str, by: str, place: Workspace) -> tuple[Entry, int | None]:
    """Retire an entry of a run, and publish the revision.

    Returns:
        The entry as it is now, and the new revision; None where it was retired already.

    Raises:
        CoevoError: run or entry is not there, reason or name cannot be written, another process writes to the run, it
            waits for a person, or its cursor is wrong.
    """
    paths = place.existing(run)
    with reading(run, place) as opened:
        opened.bank()
    with writer_lock(paths), Lineage.open(paths.lineage, place.cache) as lineage:
        bank = Bank(paths.bank)
        lineage.recover(bank)
        Cursor(paths.published).check(lineage)
        gone, made = retire_entry(entry, reason, by, paths, bank, lineage)
        publish_if_quick(place, paths, lineage, bank)
    return gone, None if made is None else made.revision
