"""A decision carried out: what enters, changes or leaves the bank of the revision in the making."""

from collections.abc import Set

from memory.admission.base import Decision
from memory.writers.base import Proposal
from tasks.session import Session
from tasks.stage import stage


@stage("admit")
def admit(session: Session, proposal: Proposal, decision: Decision) -> None:
    """Change the bank; verdicts and candidates are kept whether or not anything entered."""
    before = {entry.id for entry in session.entries}
    session.change(decision)
    session.fire()
    session.draft.metrics |= decision.metrics | counts(before, {entry.id for entry in session.entries}, proposal)


def counts(before: Set[str], after: Set[str], proposal: Proposal) -> dict[str, float]:
    """How the bank has changed, from the ids of its entries before and after."""
    return {
        "bank/admitted": float(len(after - before)),
        "bank/retired": float(len(before - after)),
        "bank/rejected": float(sum(entry.id not in after for entry in proposal.entries)),
        "bank/size": float(len(after)),
    }
