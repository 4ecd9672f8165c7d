"""What episodes say of the entries they saw: counters, and utilities where the run has them (RetroAgent Eq. 8)."""

from collections.abc import Sequence

from memory.stats import retrieved, tally
from records.episode import Episode
from tasks.session import Session
from tasks.stage import stage


@stage("credit")
def credit(session: Session, episodes: Sequence[Episode]) -> None:
    """Count the episodes, in the order (task, replica); utilities change only while the bank does."""
    bank = session.config.bank
    if bank is None:
        return
    update = bank.utility if session.evolves() else None
    session.count(tally(session.stats, episodes, update))
    if bank.utility is not None:
        worth = [session.stats[entry].utility for entry in sorted(retrieved(episodes)) if entry in session.stats]
        session.draft.metrics["bank/utility"] = sum(worth) / len(worth) if worth else bank.utility.initial
