"""What the writer makes of the trajectories since its last firing (CoEvo-RL Algorithm 1, line 8)."""

from memory.writers.base import Evidence, Proposal
from tasks.references import write_references
from tasks.session import Session
from tasks.stage import stage


@stage("write candidates")
def write(session: Session) -> Proposal:
    """The proposal; the episodes become references for later firings."""
    bank, writer = session.config.bank, session.parts.writer
    assert bank is not None and writer is not None
    evidence = Evidence(session.recent, session.library(), session.references, session.draft.revision)
    proposal = writer.write(evidence)
    if bank.references:
        session.references.add(session.recent)
        write_references(session.references, session.stores.paths.staging)
    session.draft.metrics |= {f"writer/{name}": count for name, count in proposal.counts.items()}
    return proposal
