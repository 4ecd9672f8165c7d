"""Revisions that a command makes, not the loop: the bank changes, everything else stays as it was."""

from collections.abc import Mapping

from lineage.lineage import Lineage
from lineage.manifest import Manifest
from lineage.workspace import RunPaths
from memory.change import BankChange
from memory.store import Bank
from tasks.episodes import write_episodes

FRESH: Mapping[str, object] = {"restored_from": None, "accepted_change": [], "panels": {}, "outcomes": {}}
"""Fields of the state that such a revision resets: it has no evaluation of its own."""
OWN = ("artifacts", "imported", "approval", "retired")
"""Fields of the state that belong to one revision alone."""


def commit_by_hand(
    change: BankChange, said: Mapping[str, object], figures: Mapping[str, float], paths: RunPaths, bank: Bank,
    lineage: Lineage,
) -> Manifest:  # fmt: skip
    """Commit a change of the bank; for the holder of the run's lock, after recovery.

    The revision's ``episodes`` are empty, so that those of the revision before do not count twice.

    Args:
        change: rows as they are from now on.
        said: fields of the state that say what was done.
        figures: its metrics; the size of the bank is added.
        paths: the run.
        bank: its bank.
        lineage: its lineage, which has a revision.
    """
    head = lineage.head()
    assert head is not None
    paths.clear_staging()
    write_episodes([], paths.staging / "episodes")
    bank.merge(change)
    kept = {name: value for name, value in head.state.items() if name not in OWN}
    metrics = {**figures, "bank/size": float(bank.size())}
    state = {**kept, **FRESH, **said, "metrics": metrics, "tables": bank.hashes()}
    observed = {"run": paths.name, "tables": bank.versions(), "metrics": {}}
    return lineage.commit({"episodes": paths.staging / "episodes"}, state, observed)
