"""The commit: policy, optimizer, episodes and bank become one revision, or nothing does."""

from pathlib import Path
from time import perf_counter

from lineage.code import code_revision, packages
from lineage.manifest import Manifest
from memory.change import BankChange
from tasks import ahead
from tasks.approval import waiting, write_proposal
from tasks.episodes import write_episodes
from tasks.session import Session
from tasks.stage import stage
from tasks.unfinished import FOLDER as UNFINISHED
from tasks.unfinished import write_unfinished


@stage("commit")
def commit(session: Session) -> Manifest:
    """Write what the draft holds and commit it; afterwards the next revision begins."""
    stores, staging = session.stores, session.stores.paths.staging
    write_episodes(session.draft.episodes, staging / "episodes")
    if session.config.rollout.turns is not None or stores.lineage.path(UNFINISHED).exists():
        write_unfinished(session.slots, staging)
    if session.config.rollout.ahead or stores.lineage.path(ahead.FOLDER).exists():
        ahead.write_ahead(session.ahead, staging)
    if session.draft.proposed is not None:
        write_proposal(session.draft.proposed, staging)
    stores.bank.merge(bank_change(session))
    manifest = stores.lineage.commit(artifacts(staging), state(session), observed(session))
    session.next_revision(manifest.revision)
    session.parts.player.engine.forget()
    return manifest


def artifacts(staging: Path) -> dict[str, Path]:
    """What was staged: an artifact that is not there stays as it was in the revision before."""
    return {path.name: path for path in sorted(staging.iterdir()) if path.is_dir()}


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
        "tables": session.stores.bank.hashes(),
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
        "tables": session.stores.bank.versions(),
        "metrics": {**session.draft.rates, **seconds, "seconds/wall": perf_counter() - session.since},
    }
