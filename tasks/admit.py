"""A decision carried out: what enters, changes or leaves the bank of the revision in the making."""

from memory.admission.base import Decision
from memory.pending import Pending
from memory.writers.base import Proposal
from tasks.counts import counts
from tasks.session import Session
from tasks.stage import untracked


@untracked("admit")
def admit(session: Session, proposal: Proposal, decision: Decision) -> None:
    """Change the bank, or leave that to a person; verdicts and candidates are kept whether or not anything entered."""
    proposed = [entry.id for entry in proposal.entries]
    if session.needs_a_person(decision):
        session.propose(Pending(session.draft.revision, decision, tuple(proposed)))
        waiting = {"bank/proposed": float(len(proposed)), "bank/size": float(len(session.entries))}
        session.draft.metrics |= decision.metrics | waiting
        return
    before = {entry.id for entry in session.entries}
    session.change(decision)
    session.fire()
    session.draft.metrics |= decision.metrics | counts(before, {entry.id for entry in session.entries}, proposed)
