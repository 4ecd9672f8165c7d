"""Sealing: the revision in the making ends, and nothing that comes after changes what is committed of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from coevo.lineage.revision.modules import code_of_run
from coevo.memory.bank.change import BankChange
from coevo.records.entry import Entry
from coevo.tasks.draft import PendingRevision
from coevo.tasks.play.unfinished import FOLDER as UNFINISHED
from coevo.tasks.play.unfinished import write_unfinished
from coevo.tasks.revision_artifacts import STANDINGS, TAUGHT, TRIALS, write_standings, write_taught, write_trials
from coevo.tasks.run.approval import waiting, write_proposal
from coevo.tasks.session import Session
from coevo.tasks.steps import ahead
from coevo.tasks.steps.retrieval_quality import sources
from coevo.tasks.writing.artifact import FOLDER as WRITING
from coevo.tasks.writing.artifact import KeptWriting, write_writing


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

    draft: PendingRevision
    change: BankChange
    entries: Sequence[Entry]
    before: Sequence[Entry]
    state: dict[str, object]
    observed: dict[str, object]


def seal(session: Session) -> Sealed:
    """End the revision in the making and begin the next one.

    State that the next rollout continues from is staged here; the commit stages the rest.
    """
    staging, lineage = session.stores.paths.staging, session.stores.lineage
    if session.config.rollout.turns is not None or lineage.path(UNFINISHED).exists():
        write_unfinished(session.slots, staging)
    if session.config.rollout.ahead or lineage.path(ahead.FOLDER).exists():
        ahead.write_ahead(session.ahead, staging)
    if session.bank.trials or lineage.path(TRIALS).exists():
        write_trials(session.bank.trials, staging)
    if session.bank.standings or lineage.path(STANDINGS).exists():
        write_standings(session.bank.standings, staging)
    if session.config.evaluation.retrieval or lineage.path(TAUGHT).exists():
        session.taught = {task.id: task for task in sources(session).values()}  # as a resumed run reads them
        write_taught(session.taught.values(), staging)
    if session.parts.writing is not None or lineage.path(WRITING).exists():
        write_writing(kept_writing(session), staging)
    if session.draft.proposed is not None:
        write_proposal(session.draft.proposed, staging)
    before, entries = session.held, session.bank.entries
    sealed = Sealed(session.draft, session.bank.change(), entries, before, state(session), observed(session))
    session.next_revision()
    session.parts.player.engine.forget()
    return sealed


def kept_writing(session: Session) -> KeptWriting:
    """Part of the writing that the revision keeps; nothing if the run has no author any more."""
    writing = session.parts.writing
    if writing is None:
        return KeptWriting()
    return writing.seal(session.draft.revision, (episode.id for episode in session.recent))


def state(session: Session) -> dict[str, object]:
    """State of the manifest: equal, bit for bit, in every run with the same seed."""
    config = session.config
    return {
        "iteration": session.iteration,
        "fired": session.fired,
        "config": config.model_dump(mode="json"),
        "config_hash": config.digest(),
        **code_of_run(config).state(),
        **({"weights": session.weights} if session.weights else {}),
        "accepted_change": session.accepted,
        "panels": {name: found.panel for name, found in session.draft.outcomes.items()},
        "outcomes": {name: found.solved for name, found in session.draft.outcomes.items()},
        "metrics": session.draft.metrics,
        **waiting(session.config, session.draft.proposed),
    }


def observed(session: Session) -> dict[str, object]:
    """Measurements that differ between such runs; seconds of a commit count towards the next revision."""
    seconds = {f"cost/seconds/{stage}": spent for stage, spent in session.seconds.items()}
    return {
        "run": session.stores.paths.name,
        "metrics": {**session.draft.rates, **seconds, "cost/seconds/wall": perf_counter() - session.since},
    }
