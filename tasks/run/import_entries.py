"""Entries from elsewhere become a revision: the bank with them, everything else as it was."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from coevo.configs.bank.admission_config import EditsAdmissionConfig
from coevo.lineage.lineage import Lineage
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.workspace import RunPaths
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.exchange.exchange import Incoming
from coevo.memory.stats import Stats, initial_stats
from coevo.memory.validate import refuse, shortened
from coevo.records.entry import TEXTS, Entry, entry_id, wording
from coevo.tasks.gates.entries import check_bank
from coevo.tasks.run.by_hand import commit_by_hand

IMPORTED = "import-{}/{}"
"""Name of a source episode of another run: the file's digest, 12 digits, then its name there."""


def import_entries(incoming: Incoming, paths: RunPaths, bank: Bank, lineage: Lineage) -> Manifest | None:
    """Commit what the bank lacks of these entries; None where it lacks nothing.

    For a run with a bank and a revision, under its lock and after recovery.

    Raises:
        CoevoError: the bank holds one of them otherwise.
    """
    head = lineage.head()
    assert head is not None
    added = list(_lacking(incoming, bank, head.revision + 1))
    if not added:
        return None
    check_bank(added, paths.quarantine)
    said = {"file": incoming.digest, "added": len(added), "known": len(incoming.rows) - len(added)}
    figures = {"bank/imported": float(len(added))}
    change = BankChange(entries=tuple(added), stats=_worth(added, paths, bank))
    return commit_by_hand(change, {"imported": said}, figures, paths, bank, lineage)


def _worth(added: Iterable[Entry], paths: RunPaths, bank: Bank) -> tuple[Stats, ...]:
    """Counters of entries without any, with the worth that new entries of the run begin with."""
    config, known = paths.read_config().bank, bank.stats()
    assert config is not None
    ids = [entry.id for entry in added if entry.id not in known]
    score = dict.fromkeys(ids, config.admission.initial) if isinstance(config.admission, EditsAdmissionConfig) else {}
    return tuple(initial_stats(ids, score, known, config.utility))


def _lacking(incoming: Incoming, bank: Bank, revision: int) -> Iterator[Entry]:
    """Entries without an active counterpart in the bank, as they enter; retired ones return.

    Raises:
        CoevoError: the bank holds another text under the same id.
    """
    active = bank.active()
    # By its wording, too: an entry that was edited here has kept the id of its first wording.
    held = {entry.id: entry for entry in active} | {entry_id(entry.scope, entry.strategy): entry for entry in active}
    for where, entry in incoming.rows.items():
        other = held.get(entry.id)
        if other is None:
            yield replace(entry, sources=_sources(entry, incoming), created=revision, edited=revision)
            continue
        for name in TEXTS:
            if wording(getattr(entry, name)) != wording(getattr(other, name)):
                mine = shortened(getattr(other, name))
                refuse(where, name, getattr(entry, name), f"the bank has {mine} for entry {entry.id}: remove the row")


def _sources(entry: Entry, incoming: Incoming) -> tuple[str, ...]:
    return tuple(
        source if source.startswith("import-") else IMPORTED.format(incoming.digest[:12], source)
        for source in entry.sources
    )
