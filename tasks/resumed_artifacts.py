"""Artifacts that a run continues from: how each is staged for a revision, and how a session takes it up again.

Policy and optimizer are staged by the update, the episodes of a revision by its commit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from coevo.lineage.revision.manifest import Manifest
from coevo.tasks import revision_artifacts as stored
from coevo.tasks.iteration import ahead
from coevo.tasks.iteration.retrieval_quality import sources
from coevo.tasks.play import unfinished
from coevo.tasks.session import Session
from coevo.tasks.writing import artifact as writing


@dataclass(frozen=True, slots=True)
class KeptArtifact:
    """An artifact of a revision that the next one continues from.

    Attributes:
        name: of the artifact, and of its directory.
        has: whether the session has something to keep; what the revision before kept is staged again in any case.
        write: stages it in a directory of all artifacts.
        restore: takes it up, from its committed directory or from None.
    """

    name: str
    has: Callable[[Session], bool]
    write: Callable[[Session, Path], None]
    restore: Callable[[Session, Path | None, Manifest], None]


def stage_artifacts(session: Session) -> None:
    """Stage all that the next rollout continues from."""
    for each in KEPT:
        if each.has(session) or session.stores.lineage.path(each.name).exists():
            each.write(session, session.stores.paths.staging)


def restore_artifacts(session: Session, head: Manifest) -> None:
    """Take up all that a revision has kept.

    Raises:
        CoevoError: the environment does not answer the recorded actions of an unfinished episode as it did.
    """
    for each in KEPT:
        path = session.stores.lineage.path(each.name) if each.name in head.artifacts else None
        each.restore(session, path, head)


def _write_taught(session: Session, staging: Path) -> None:
    session.taught = {task.id: task for task in sources(session).values()}  # as a resumed run reads them
    stored.write_taught(session.taught.values(), staging)


def _write_writing(session: Session, staging: Path) -> None:
    writing.write_writing(kept_writing(session), staging)


def kept_writing(session: Session) -> writing.KeptWriting:
    """Part of the writing that the revision keeps; nothing if the run has no writer model any more."""
    if session.parts.writing is None:
        return writing.KeptWriting()
    return session.parts.writing.seal(session.draft.revision, (episode.id for episode in session.recent))


def _restore_baselines(session: Session, path: Path | None, head: Manifest) -> None:
    session.baselines = stored.read_baselines(path)


def _restore_references(session: Session, path: Path | None, head: Manifest) -> None:
    session.references = stored.references_of(session.config, path)


def _restore_trials(session: Session, path: Path | None, head: Manifest) -> None:
    session.bank.trials = stored.read_trials(path)


def _restore_standings(session: Session, path: Path | None, head: Manifest) -> None:
    session.bank.standings = stored.read_standings(path)


def _restore_taught(session: Session, path: Path | None, head: Manifest) -> None:
    session.taught = stored.read_taught(path)


def _restore_unfinished(session: Session, path: Path | None, head: Manifest) -> None:
    """After a rollback or in a branch they continue under other ids, since they may have ended otherwise before."""
    if path is None or session.config.rollout.turns is None:
        return
    for episode in unfinished.read_unfinished(path):
        mine = episode if head.restored_from is None else unfinished.forked(episode, head.revision)
        unfinished.take_up(session.slots, session.parts.env, mine)


def _restore_ahead(session: Session, path: Path | None, head: Manifest) -> None:
    if path is not None and session.config.rollout.ahead and not session.accepted:
        session.ahead = ahead.read_ahead(path)


def _opened_with_its_writer_model(session: Session, path: Path | None, head: Manifest) -> None:
    """``take_up_writing`` reads it, before there is a session."""


KEPT = (
    KeptArtifact(
        stored.BASELINES,
        lambda session: bool(session.baselines),
        lambda session, staging: stored.write_baselines(session.baselines, staging),
        _restore_baselines,
    ),
    KeptArtifact(
        stored.REFERENCES,
        lambda session: any(True for _ in session.references.episodes()),
        lambda session, staging: stored.write_references(session.references, staging),
        _restore_references,
    ),
    KeptArtifact(
        stored.TRIALS,
        lambda session: bool(session.bank.trials),
        lambda session, staging: stored.write_trials(session.bank.trials, staging),
        _restore_trials,
    ),
    KeptArtifact(
        stored.STANDINGS,
        lambda session: bool(session.bank.standings),
        lambda session, staging: stored.write_standings(session.bank.standings, staging),
        _restore_standings,
    ),
    KeptArtifact(stored.TAUGHT, lambda session: session.config.evaluation.retrieval, _write_taught, _restore_taught),
    KeptArtifact(
        unfinished.FOLDER,
        lambda session: session.config.rollout.turns is not None,
        lambda session, staging: unfinished.write_unfinished(session.slots, staging),
        _restore_unfinished,
    ),
    KeptArtifact(
        ahead.FOLDER,
        lambda session: bool(session.config.rollout.ahead),
        lambda session, staging: ahead.write_ahead(session.ahead, staging),
        _restore_ahead,
    ),
    KeptArtifact(
        writing.FOLDER, lambda session: session.parts.writing is not None, _write_writing, _opened_with_its_writer_model
    ),
)
"""All of them. A new one is a row here, with what it writes and reads in ``revision_artifacts``."""
