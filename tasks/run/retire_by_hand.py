"""A person takes an entry out of the bank, as a revision: it is never shown again, and its history stays."""

from dataclasses import replace

from coevo.lineage.lineage import Lineage
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import waits
from coevo.lineage.workspace import RunPaths
from coevo.memory.admission.retirement import ruling
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.clusters import Cluster, Clusters
from coevo.records.entry import Entry
from coevo.tasks.run.by_hand import commit_by_hand
from coevo.utilities.errors import CoevoError


def retire_entry(
    entry: str, reason: str, by: str, paths: RunPaths, bank: Bank, lineage: Lineage
) -> tuple[Entry, Manifest | None]:
    """Commit the bank without an entry; for the holder of the run's lock, after recovery.

    Args:
        entry: its id.
        reason: why, in one line.
        by: who decides.
        paths: the run, which has a bank and a revision.
        bank: its bank.
        lineage: its lineage.

    Returns:
        The entry, and the revision; None instead of a revision where the entry was retired already.

    Raises:
        CoevoError: the bank never held the entry, the run waits for a person, or reason or name cannot be written.
    """
    head = lineage.head()
    assert head is not None
    held = next((each for each in bank.entries() if each.id == entry), None)
    if held is None:
        raise CoevoError(
            f"entry {entry!r} is not in the bank of {paths.name}: `coevo bank show` lists the ids that are"
        )
    said = ruling(held, reason, by, head.revision + 1)
    if not held.active:
        return held, None
    if waits(head):
        raise CoevoError(
            f"{paths.name}@{head.revision} waits for approval of another change: decide first, "
            f"`coevo approve {paths.name} [--reject]`"
        )
    gone = replace(held, retired=head.revision + 1)
    change = BankChange(entries=(gone,), clusters=_left(gone, paths, bank), operations=(said,))
    return gone, commit_by_hand(
        change, {"retired": {"entry": gone.id, "reason": said.reason}}, {"bank/retired": 1.0}, paths, bank, lineage
    )


def _left(entry: Entry, paths: RunPaths, bank: Bank) -> tuple[Cluster, ...]:
    """The observation clusters that the entry belonged to, without it."""
    config = paths.read_config().clusters
    if config is None:
        return ()
    clusters = Clusters(config, bank.clusters())
    clusters.unlink([entry.id])
    return clusters.changed()
