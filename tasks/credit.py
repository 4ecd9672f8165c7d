"""What episodes say of the entries they saw: counters, and utilities where the run has them (RetroAgent Eq. 8)."""

from memory.stats import retrieved, tally
from tasks.session import Session
from tasks.stage import untracked


@untracked("credit")
def credit(session: Session) -> None:
    """Count the episodes that this iteration has ended, in order; utilities change only while the bank does."""
    bank, episodes = session.config.bank, session.ended
    if bank is None:
        return
    update = bank.utility if session.evolves() else None
    session.count(tally(session.stats, episodes, update))
    if bank.utility is not None:
        worth = [session.stats[entry].utility for entry in sorted(retrieved(episodes)) if entry in session.stats]
        session.draft.metrics["bank/utility"] = sum(worth) / len(worth) if worth else bank.utility.initial
