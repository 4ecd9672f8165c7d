"""Sealing: the revision in the making ends, and nothing that comes after changes what is committed of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from lineage.code import code_revision, packages
from memory.change import BankChange
from records.entry import Entry
from tasks import ahead
from tasks.approval import waiting, write_proposal
from tasks.session import Draft, Session
from tasks.unfinished import FOLDER as UNFINISHED
from tasks.unfinished import write_unfinished


@dataclass(frozen=True)
class Sealed:
    """A revision that is complete and not yet committed.

    Attributes:
        draft: what was made.
        change: what it changes in the bank.
        entries: the bank with it.
        before: the bank without.
        state: the manifest's, but for what only the commit knows.
        observed: the manifest's, likewise.
    """

    draft: Draft
    change: BankChange
    entries: Sequence[Entry]
    before: Sequence[Entry]
    state: dict[str, object]
    observed: dict[str, object]


def seal(session: Session) -> Sealed:
    """End the revision in the making and begin the next one.

    What the next rollout takes up and goes on with is staged here; the commit stages the rest.
    """
    staging, lineage = session.stores.paths.staging, session.stores.lineage
    if session.config.rollout.turns is not None or lineage.path(UNFINISHED).exists():
        write_unfinished(session.slots, staging)
    if session.config.rollout.ahead or lineage.path(ahead.FOLDER).exists():
        ahead.write_ahead(session.ahead, staging)
    if session.draft.proposed is not None:
        write_proposal(session.draft.proposed, staging)
    before, entries = session.held, session.entries
    sealed = Sealed(session.draft, bank_change(session), entries, before, state(session), observed(session))
    session.next_revision()
    session.parts.player.engine.forget()
    return sealed


def bank_change(session: Session) -> BankChange:
    """Entries and counters that changed, what replay said, clusters made or linked, what became of operations."""
    draft = session.draft
    clusters = () if session.clusters is None else session.clusters.changed()
    entries, stats = tuple(draft.entries.values()), tuple(draft.stats.values())
    return BankChange(entries, stats, tuple(draft.judged), clusters, tuple(draft.operations))


def state(session: Session) -> dict[str, object]:
    """What a run with the same seed has equal, bit for bit."""
    config = session.config
    return {
        "iteration": session.iteration,
        "fired": session.fired,
        "config": config.model_dump(mode="json"),
        "config_hash": config.digest(),
        "code": code_revision(),
        "packages": packages(),
        "accepted_change": session.accepted,
        "panels": session.draft.panels,
        "outcomes": session.draft.outcomes,
        "metrics": session.draft.metrics,
        **waiting(session.config, session.draft.proposed),
    }


def observed(session: Session) -> dict[str, object]:
    """What differs between two such runs; the seconds of a commit count towards the revision after it."""
    seconds = {f"seconds/{stage}": spent for stage, spent in session.seconds.items()}
    return {
        "run": session.stores.paths.name,
        "metrics": {**session.draft.rates, **seconds, "seconds/wall": perf_counter() - session.since},
    }
