"""What episodes say of the entries they saw: counters, and utilities where the run has them (RetroAgent Eq. 8)."""

from collections.abc import Sequence

from memory.stats import retrieved, tally
from records.episode import Episode
from tasks.session import Session
from tasks.stage import stage


@stage("credit")
def credit(session: Session, episodes: Sequence[Episode]) -> None:
    """Count the episodes, in the order (task, replica); retrieval learns of it from the next iteration on."""
    bank = session.config.bank
    if bank is None:
        return
    session.count(tally(session.stats, episodes, bank.utility))
    if bank.utility is not None:
        worth = [session.stats[entry].utility for entry in sorted(retrieved(episodes)) if entry in session.stats]
        session.draft.metrics["bank/utility"] = sum(worth) / len(worth) if worth else bank.utility.initial
