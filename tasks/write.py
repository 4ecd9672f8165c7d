"""Candidate entries from the trajectories since the last firing (CoEvo-RL Algorithm 1, line 8)."""

from records.entry import Entry
from tasks.session import Session
from tasks.stage import stage


@stage("write candidates")
def write(session: Session) -> list[Entry]:
    """What the writer proposes; entries that the bank already holds are not proposed again."""
    assert session.parts.writer is not None
    known = {entry.id for entry in session.entries}
    return session.parts.writer.write(session.recent, known, session.draft.revision)
