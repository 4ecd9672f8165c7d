"""Artifacts that a run resumes from: when each is written, and how a resumed session reads it.

The update writes policy and optimizer, the commit writes the episodes of its revision.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from coevo.lineage.revision.manifest import Manifest
from coevo.tasks import revision_artifacts as stored
from coevo.tasks.gateway import session_selection
from coevo.tasks.iteration import prefetch
from coevo.tasks.iteration.retrieval_quality import sources
from coevo.tasks.play import vectorised_environments
from coevo.tasks.session import Session
from coevo.tasks.writing import artifact as writing


@dataclass(frozen=True, slots=True)
class ResumedArtifact:
    """An artifact of a revision that the next one continues from.

    Attributes:
        name: name of the artifact, and of its directory.
        is_due: True if this revision writes it; else the artifact of the previous revision stays. The second argument
            is True if there is one.
        write: writes it below the staging directory.
        restore: reads it into the session, from its committed directory, or from None where the revision has none.
            None for an artifact that is read before the session exists.
    """

    name: str
    is_due: Callable[[Session, bool], bool]
    write: Callable[[Session, Path], None]
    restore: Callable[[Session, Path | None, Manifest], None] | None


def stage_artifacts(session: Session) -> None:
    """Write the artifacts that the next rollout continues from to the staging directory."""
    for each in RESUMED:
        if each.is_due(session, session.stores.lineage.artifacts.path(each.name).exists()):
            each.write(session, session.stores.paths.staging)


def restore_artifacts(session: Session, head: Manifest) -> None:
    """Read the artifacts of a revision into the session.

    Raises:
        CoevoError: the environment does not answer the recorded actions of an unfinished episode as it did.
    """
    for each in RESUMED:
        if each.restore is None:
            continue
        path = session.stores.lineage.artifacts.path(each.name) if each.name in head.artifacts else None
        each.restore(session, path, head)


def _write_taught(session: Session, staging: Path) -> None:
    session.source_tasks = {task.id: task for task in sources(session).values()}  # as a resumed run reads them
    stored.write_source_tasks(session.source_tasks.values(), staging)


def _write_writing(session: Session, staging: Path) -> None:
    writing.write_writing(kept_writing(session), staging)


def kept_writing(session: Session) -> writing.KeptWriting:
    """Part of the writing that the revision keeps; nothing if the run has no writer model any more."""
    if session.parts.writing is None:
        return writing.KeptWriting()
    return session.parts.writing.freeze(session.pending.revision, (episode.id for episode in session.recent))


def _restore_baselines(session: Session, path: Path | None, head: Manifest) -> None:
    session.baselines = stored.read_baselines(path)


def _restore_references(session: Session, path: Path | None, head: Manifest) -> None:
    session.references = stored.references_of(session.config, path)


def _restore_trials(session: Session, path: Path | None, head: Manifest) -> None:
    session.bank.trials = stored.read_trials(path)


def _restore_standings(session: Session, path: Path | None, head: Manifest) -> None:
    session.bank.retirement_counters = stored.read_retirement_counters(path)


def _restore_taught(session: Session, path: Path | None, head: Manifest) -> None:
    session.source_tasks = stored.read_source_tasks(path)


def _restore_unfinished(session: Session, path: Path | None, head: Manifest) -> None:
    """After a rollback or in a branch they continue under other ids, since they may have ended otherwise before."""
    if path is None or session.config.rollout.turns is None:
        return
    for episode in vectorised_environments.read_unfinished(path):
        mine = episode if head.restored_from is None else vectorised_environments.forked(episode, head.revision)
        vectorised_environments.take_up(session.environments, session.parts.env, mine)


def _restore_ahead(session: Session, path: Path | None, head: Manifest) -> None:
    if path is not None and session.config.rollout.ahead and not session.accepted:
        session.prefetched = prefetch.read_prefetched(path)


def _references_are_due(session: Session, exists: bool) -> bool:
    """Only a firing of the writer adds references, which hold whole episodes."""
    bank = session.config.bank
    if bank is None or not bank.references:
        return False
    fired = session.waiting or session.fired == session.pending.revision
    return fired and any(True for _ in session.references.episodes())


def _restore_taken(session: Session, path: Path | None, head: Manifest) -> None:
    session.taken = session_selection.read_taken(path)


RESUMED = (
    ResumedArtifact(
        stored.BASELINES,
        lambda session, exists: bool(session.baselines),
        lambda session, staging: stored.write_baselines(session.baselines, staging),
        _restore_baselines,
    ),
    ResumedArtifact(
        stored.REFERENCES,
        _references_are_due,
        lambda session, staging: stored.write_references(session.references, staging),
        _restore_references,
    ),
    ResumedArtifact(
        stored.TRIALS,
        lambda session, exists: exists or bool(session.bank.trials),
        lambda session, staging: stored.write_trials(session.bank.trials, staging),
        _restore_trials,
    ),
    ResumedArtifact(
        stored.RETIREMENT_COUNTERS,
        lambda session, exists: exists or bool(session.bank.retirement_counters),
        lambda session, staging: stored.write_retirement_counters(session.bank.retirement_counters, staging),
        _restore_standings,
    ),
    ResumedArtifact(
        stored.SOURCE_TASKS,
        lambda session, exists: exists or session.config.evaluation.retrieval,
        _write_taught,
        _restore_taught,
    ),
    ResumedArtifact(
        vectorised_environments.FOLDER,
        lambda session, exists: exists or session.config.rollout.turns is not None,
        lambda session, staging: vectorised_environments.write_unfinished(session.environments, staging),
        _restore_unfinished,
    ),
    ResumedArtifact(
        prefetch.FOLDER,
        lambda session, exists: exists or bool(session.config.rollout.ahead),
        lambda session, staging: prefetch.write_prefetched(session.prefetched, staging),
        _restore_ahead,
    ),
    ResumedArtifact(
        session_selection.FOLDER,
        lambda session, exists: exists or session.config.rollout.gateway is not None,
        lambda session, staging: session_selection.write_taken(session.taken, staging),
        _restore_taken,
    ),
    ResumedArtifact(
        writing.FOLDER,
        lambda session, exists: exists or session.parts.writing is not None,
        _write_writing,
        None,  # ``take_up_writing`` reads it
    ),
)
"""Every such artifact. A new one is a row here, with its files in ``revision_artifacts``."""
