"""Opening a run: take its lock, recover its stores, and find where it stands."""

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from coevo.configs.placement_config import SharedPlacement
from coevo.configs.run_config import RunConfig
from coevo.lineage.atomic_files import check_file_system
from coevo.lineage.cursor import Cursor
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.retention import trail_since
from coevo.lineage.status import PREPARATION, WARM_START, record_stage, recording_status, waits
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.bank import Bank
from coevo.models.engines.requests import Engine
from coevo.models.trainer.trainer_client import Trainer
from coevo.records.episode import Episode
from coevo.tasks import revision_artifacts
from coevo.tasks.draft import PendingRevision, Result
from coevo.tasks.parts import Stores
from coevo.tasks.placement import trainer_environment
from coevo.tasks.play import unfinished
from coevo.tasks.publish.catchup import open_publisher
from coevo.tasks.publish.prefect import artifacts_of
from coevo.tasks.publish.prune import pruner
from coevo.tasks.publish.reporter import Reporter, in_stage
from coevo.tasks.revision_artifacts import BASELINES, REFERENCES, STANDINGS, TAUGHT, TRIALS
from coevo.tasks.run.assemble import assemble, check_engine, environment_of, open_engine
from coevo.tasks.run.changes import check_unchanged
from coevo.tasks.run.run_author import is_budgeted, journal_after, open_writing, spent_before
from coevo.tasks.run.run_space import require_start
from coevo.tasks.run.warmstart import start_metrics, warm_start
from coevo.tasks.run.weight_digests import digests
from coevo.tasks.session import Session
from coevo.tasks.stage import recording
from coevo.tasks.steps import ahead
from coevo.tasks.writing.artifact import FOLDER as WRITING
from coevo.tasks.writing.artifact import read_writing
from coevo.tasks.writing.ask_author import Writing


@contextmanager
def open_session(run: str, root: Path, reporter: Reporter, accept_change: bool) -> Iterator[Session]:
    """The run, recovered and ready for its next revision; one writer at a time.

    Raises:
        CoevoError: another process writes to the run, its configuration, code, packages or weights have changed, a
            store is beyond recovery, the file system lacks what runs need, a setting is not confirmed, or a revision
            recorded as published does not exist.
    """
    workspace = Workspace(root)
    paths = workspace.existing(run)
    check_file_system(paths.root)
    seconds, began = dict[str, float](), perf_counter()
    with ExitStack() as stack:
        stack.enter_context(writer_lock(paths))
        stack.enter_context(recording(seconds))
        stack.enter_context(recording_status(paths))
        config = paths.read_config()
        workspace.trust.demand(run, config)
        env = stack.enter_context(environment_of(config))
        check_engine(config)
        with in_stage("recovers the last revision"):
            lineage, bank = stack.enter_context(recovered(paths, workspace))
            head = lineage.head()
            weights = digests(config, root)
            accepted = check_unchanged(config, head, run, accept_change, weights)
        with in_stage("opens the pages of MLflow and Prefect"):
            record_stage(paths, WARM_START if head is None else PREPARATION)
            publisher = stack.enter_context(open_publisher(paths, bank, lineage, env.name, reporter))
            prune = pruner(root)
            pages = stack.enter_context(artifacts_of(run, config.iterations, config.recipe, reporter.warn, prune))
        start = warm_start(config, env, workspace.warmstarts, reporter) if head is None else lineage.path("policy")
        require_start(config, start, lineage.sizes(), paths.root)
        with in_stage("starts the trainer and the engine"):
            trainer = stack.enter_context(open_trainer(config, start, lineage, head, paths)) if config.update else None
            if trainer is not None and isinstance(config.placement, SharedPlacement):
                trainer.wait()  # a server takes what its GPU has left while it starts
            engine = stack.enter_context(closing(open_engine(config, start, paths.engine)))
        stores = Stores(paths, bank, lineage, publisher, reporter, pages)
        writing = stack.enter_context(take_up_writing(config, stores, engine, head))
        session = Session(config, assemble(config, env, engine, trainer, writing), stores)
        session.accepted, session.weights = accepted, weights
        position(session, head, start)
        session.begin_clock(began, seconds)
        yield session


@contextmanager
def recovered(paths: RunPaths, workspace: Workspace) -> Iterator[tuple[Lineage, Bank]]:
    """Lineage and bank of a run at its last revision, whatever an earlier process left behind."""
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        bank = Bank(paths.bank)
        lineage.recover(bank)
        Cursor(paths.published).check(lineage)
        paths.clear_staging()
        yield lineage, bank


def open_trainer(config: RunConfig, start: Path, lineage: Lineage, head: Manifest | None, paths: RunPaths) -> Trainer:
    """The trainer child at the head's policy and optimizer; the reference is the policy of revision 0."""
    assert config.update is not None
    reference, optimizer = start, None
    if head is not None:
        reference = lineage.materialise(0, "policy", paths.reference)
        optimizer = lineage.path("optimizer") if "optimizer" in head.artifacts else None
    return Trainer(
        config.update,
        temperature=config.rollout.sampling.temperature,
        threads=config.rollout.engine.threads,
        policy=start,
        reference=reference,
        optimizer=optimizer,
        log=paths.log,
        variables=trainer_environment(config),
    )


def position(session: Session, head: Manifest | None, start: Path) -> None:
    """Put the session where the run stands: before revision 0, or after its last one."""
    if head is None:
        shutil.copytree(start, session.stores.paths.staging / "policy")
        session.draft.record(Result(None, start_metrics(start)))
        return
    session.iteration = session.sealed_at = head.iteration
    session.fired = int(head.state["fired"])
    session.waiting = waits(head)
    session.draft = PendingRevision(revision=head.revision + 1)
    lineage = session.stores.lineage
    names = (BASELINES, REFERENCES, TRIALS, STANDINGS, TAUGHT)
    kept = {name: lineage.path(name) for name in names if name in head.artifacts}
    session.baselines = revision_artifacts.read_baselines(kept.get(BASELINES))
    session.bank.trials = revision_artifacts.read_trials(kept.get(TRIALS))
    session.bank.standings = revision_artifacts.read_standings(kept.get(STANDINGS))
    session.taught = revision_artifacts.read_taught(kept.get(TAUGHT))
    session.references = revision_artifacts.references_of(session.config, kept.get(REFERENCES))
    if unfinished.FOLDER in head.artifacts and session.config.rollout.turns is not None:
        take_up_unfinished(session, head)
    if ahead.FOLDER in head.artifacts and session.config.rollout.ahead and not session.accepted:
        session.ahead = ahead.read_ahead(lineage.path(ahead.FOLDER))
    if session.evolves():
        scratch = session.stores.paths.scratch
        session.recent = episodes_since(lineage, head, session.fired, scratch)


def take_up_writing(
    config: RunConfig, stores: Stores, engine: Engine, head: Manifest | None
) -> AbstractContextManager[Writing | None]:
    """The writing of a run after its last revision, with the answers that arrived since."""
    place = stores.lineage.path(WRITING) if head is not None and WRITING in head.artifacts else None
    journal = journal_after(head, stores.lineage, stores.paths.journal)
    author, warn = stores.paths.engine / "author", stores.reporter.warn
    kept = read_writing(place)
    if head is not None and is_budgeted(config):
        kept = replace(kept, spent=spent_before(stores.lineage, head, kept.spent, stores.paths.scratch, warn))
    return open_writing(config, engine, author, journal, kept, warn)


def take_up_unfinished(session: Session, head: Manifest) -> None:
    """Take up the episodes that were unfinished at the last revision.

    After a rollback or in a branch they continue under other ids, since they may have ended otherwise before.

    Raises:
        CoevoError: the environment does not answer their recorded actions as it did.
    """
    for episode in unfinished.read_unfinished(session.stores.lineage.path(unfinished.FOLDER)):
        mine = episode if head.restored_from is None else unfinished.forked(episode, head.revision)
        unfinished.take_up(session.slots, session.parts.env, mine)


def episodes_since(lineage: Lineage, head: Manifest, fired: int, scratch: Path) -> list[Episode]:
    """Training episodes of the revisions after ``fired``, oldest first, along the history that led to ``head``.

    Those that teach nothing are left out.
    """
    trail = trail_since(lineage.manifest, head, fired)
    found = (episode for revision in trail for episode in revision_artifacts.episodes_of(lineage, revision, scratch))
    return [episode for episode in found if episode.teaches]
