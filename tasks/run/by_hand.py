"""Revisions made by a command: the bank changes, everything else stays as it was."""

from collections.abc import Mapping
from types import MappingProxyType

from coevo.lineage.lineage import Lineage
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.workspace import RunPaths
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.tasks.revision_artifacts import EPISODES, write_episodes

FRESH: Mapping[str, object] = {"restored_from": None, "accepted_change": [], "panels": {}, "outcomes": {}}
"""Fields of the state that such a revision resets: it has no evaluation of its own."""
OWN = ("artifacts", "imported", "approval", "retired")
"""Fields of the state that belong to one revision alone."""


def commit_by_hand(
    change: BankChange, said: Mapping[str, object], figures: Mapping[str, float], paths: RunPaths, bank: Bank,
    lineage: Lineage, observed: Mapping[str, object] = MappingProxyType({}),
) -> Manifest:  # fmt: skip
    """Commit a change of the bank; for the holder of the run's lock, after recovery.

    The revision's ``episodes`` are empty, so that those of the revision before do not count twice.

    Args:
        change: rows as they are from now on.
        said: fields of the state that describe the change.
        figures: its metrics; the size of the bank is added.
        paths: the run.
        bank: its bank.
        lineage: its lineage, which has a revision.
        observed: fields beside the state, which change nothing that follows.
    """
    head = lineage.head()
    assert head is not None
    paths.clear_staging()
    write_episodes([], paths.staging / EPISODES)
    bank.merge(change)
    kept = {name: value for name, value in head.state.items() if name not in OWN}
    metrics = {**figures, "bank/size": float(bank.size())}
    state = {**kept, **FRESH, **said, "metrics": metrics, "tables": bank.hashes()}
    seen = {"run": paths.name, "tables": bank.versions(), "metrics": {}, **observed}
    return lineage.commit({EPISODES: paths.staging / EPISODES}, state, seen)
