"""Revisions made by a command: the bank changes, everything else stays as it was."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from coevo.configs.bank.admission_config import EditsAdmissionConfig
from coevo.lineage.lineage import Lineage
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import waits
from coevo.lineage.workspace import RunPaths
from coevo.memory.admission.rulings import ruling
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.clusters import Cluster, Clusters
from coevo.memory.exchange.exchange import Incoming
from coevo.memory.stats import Stats, initial_stats
from coevo.memory.validate import refuse, shortened
from coevo.records.entry import TEXTS, Entry, entry_id, wording
from coevo.tasks.gates.entries import check_bank
from coevo.tasks.revision_artifacts import EPISODES, write_episodes
from coevo.utilities.errors import CoevoError

FRESH: Mapping[str, object] = {"restored_from": None, "accepted_change": [], "panels": {}, "outcomes": {}}
"""Fields of the state that such a revision resets: it has no evaluation of its own."""
OWN = ("artifacts", "imported", "approval", "retired")
"""Fields of the state that belong to one revision alone."""
IMPORTED = "import-{}/{}"
"""Name of a source episode of another run: the file's digest, 12 digits, then its name there."""


@dataclass(frozen=True)
class HandMadeChange:
    """A change of the bank, with what its revision says of it.

    Attributes:
        bank: rows as they are from now on.
        state: fields of the state that describe the change.
        metrics: figures of the change; the size of the bank is added.
        observed: fields beside the state, which change nothing that follows.
    """

    bank: BankChange
    state: Mapping[str, object] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    observed: Mapping[str, object] = field(default_factory=dict)


def commit_by_hand(change: HandMadeChange, paths: RunPaths, bank: Bank, lineage: Lineage) -> Manifest:
    """Commit a change of the bank; for the holder of the run's lock, after recovery.

    The revision's ``episodes`` are empty, so that those of the revision before do not count twice.

    Args:
        change: the change.
        paths: the run.
        bank: its bank.
        lineage: its lineage, which has a revision.
    """
    head = lineage.history.head()
    assert head is not None
    paths.clear_staging()
    write_episodes([], paths.staging / EPISODES)
    bank.merge(change.bank)
    kept = {name: value for name, value in head.state.items() if name not in OWN}
    metrics = {**change.metrics, "bank/size": float(bank.size())}
    state = {**kept, **FRESH, **change.state, "metrics": metrics, "tables": bank.hashes()}
    seen = {"run": paths.name, "tables": bank.versions(), "metrics": {}, **change.observed}
    return lineage.commit({EPISODES: paths.staging / EPISODES}, state, seen)


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
    head = lineage.history.head()
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
    rows = BankChange(entries=(gone,), clusters=_left(gone, paths, bank), operations=(said,))
    change = HandMadeChange(rows, {"retired": {"entry": gone.id, "reason": said.reason}}, {"bank/retired": 1.0})
    return gone, commit_by_hand(change, paths, bank, lineage)


def _left(entry: Entry, paths: RunPaths, bank: Bank) -> tuple[Cluster, ...]:
    """The observation clusters that the entry belonged to, without it."""
    config = paths.read_config().clusters
    if config is None:
        return ()
    clusters = Clusters(config, bank.clusters())
    clusters.unlink([entry.id])
    return clusters.changed()


def import_entries(incoming: Incoming, paths: RunPaths, bank: Bank, lineage: Lineage) -> Manifest | None:
    """Commit what the bank lacks of these entries; None where it lacks nothing.

    For a run with a bank and a revision, under its lock and after recovery.

    Raises:
        CoevoError: the bank holds one of them otherwise.
    """
    head = lineage.history.head()
    assert head is not None
    added = list(_lacking(incoming, bank, head.revision + 1))
    if not added:
        return None
    check_bank(added, paths.quarantine)
    said = {"file": incoming.digest, "added": len(added), "known": len(incoming.rows) - len(added)}
    figures = {"bank/imported": float(len(added))}
    rows = BankChange(entries=tuple(added), stats=_worth(added, paths, bank))
    return commit_by_hand(HandMadeChange(rows, {"imported": said}, figures), paths, bank, lineage)


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
