"""Opening a run: take its lock, recover its stores, and find where it stands."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from coevo.configs.placement_config import SharedPlacement
from coevo.configs.policy_config import EndpointPolicyConfig
from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment
from coevo.lineage.atomic_files import check_file_system
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.objects.cache import disk_usage
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.retention import trail_since
from coevo.lineage.status import PREPARATION, WARM_START, record_stage, recording_status, waits
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.bank import Bank
from coevo.models.engines.requests import Charging, Engine
from coevo.models.trainer.trainer_client import Trainer
from coevo.records.episode import Episode
from coevo.tasks import revision_artifacts
from coevo.tasks.gates.tables import check_table
from coevo.tasks.parts import Stores
from coevo.tasks.pending_revision import PendingRevision, Result
from coevo.tasks.placement import starting_point, trainer_launch
from coevo.tasks.publish.catchup import open_publisher
from coevo.tasks.publish.prefect import artifacts_of
from coevo.tasks.publish.reporter import Reporter, in_stage, recording_phases
from coevo.tasks.resumed_artifacts import restore_artifacts
from coevo.tasks.run.assemble import assemble, check_engine, environment_of, open_engine
from coevo.tasks.run.changes import check_unchanged
from coevo.tasks.run.run_writer_model import is_budgeted, journal_after, open_writing, spent_before
from coevo.tasks.run.warmstart import describe, start_metrics, warm_start
from coevo.tasks.run.weight_digests import digests
from coevo.tasks.session import Session
from coevo.tasks.stage import recording
from coevo.tasks.writing.artifact import FOLDER as WRITING
from coevo.tasks.writing.artifact import read_writing
from coevo.tasks.writing.ask_writer_model import Writing
from coevo.utilities.errors import CoevoError
from coevo.utilities.free_space import require_space

if TYPE_CHECKING:
    from coevo.models.weights.tensor_file import Spec

VARIABLE = "COEVO_PREFECT_TASK_RUNS"
KEEP = 1000
"""Task runs to keep, of all runs of a workspace: some 90 revisions of the default recipe, in 5 MB."""
MAX_DELETED = 500
"""Most task runs deleted per revision."""
DATABASE_TIMEOUT_S = 5.0
"""Timeout in seconds, since the server also writes to its database."""
OLD = f"""
DELETE FROM task_run WHERE id IN (
    SELECT id FROM task_run WHERE state_type IN ('COMPLETED', 'FAILED', 'CANCELLED', 'CRASHED')
    ORDER BY end_time DESC LIMIT {MAX_DELETED} OFFSET ?
)
"""


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
        reporter = stack.enter_context(recording_phases(paths, reporter))
        config = paths.read_config()
        workspace.trust.demand(run, config)
        env = stack.enter_context(environment_of(config))
        check_engine(config)
        with in_stage("recovers the last revision"):
            lineage, bank = stack.enter_context(recovered(paths, workspace))
            head = lineage.history.head()
            accepted = check_unchanged(config, head, run, accept_change, weights := digests(config, root, env))
            check_rows(env, paths, anew=head is None or bool(accepted))
        with in_stage("opens the pages of MLflow and Prefect"):
            record_stage(paths, WARM_START if head is None else PREPARATION)
            publisher = stack.enter_context(open_publisher(paths, bank, lineage, env.name, reporter))
            prune = pruner(root)
            pages = stack.enter_context(artifacts_of(run, config.iterations, config.recipe, reporter.warn, prune))
        start = lineage.artifacts.path("policy") if head else warm_start(config, env, workspace.warmstarts, reporter)
        require_start(config, start, lineage.artifacts.sizes(), paths.root)
        with in_stage("starts the trainer and the engine"):
            trainer = stack.enter_context(open_trainer(config, start, lineage, head, paths)) if config.update else None
            if trainer is not None and isinstance(config.placement, SharedPlacement):
                trainer.wait()  # a server takes what its GPU has left while it starts
            engine = stack.enter_context(closing(engine_at(config, start, paths, head)))
        stores = Stores(paths, bank, lineage, publisher, reporter, pages)
        writing = stack.enter_context(take_up_writing(config, stores, engine, head))
        session = Session(config, assemble(config, env, engine, trainer, writing), stores)
        session.accepted, session.weights = accepted, weights
        position(session, head, start)
        session.begin_clock(began, seconds)
        yield session


def check_rows(env: Environment[object], paths: RunPaths, anew: bool) -> None:
    """Check the table of tasks of a run, if it has one and ``anew``: a table with a known hash was checked before.

    Raises:
        GateError: a row or a reward is not as it should be.
    """
    if anew:
        check_table(env, paths.quarantine)


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
    return Trainer(
        config.update,
        starting_point(lineage, head, start, paths.reference),
        temperature=config.rollout.sampling.temperature,
        threads=config.rollout.engine.threads,
        log=paths.log,
        launch=trainer_launch(config),
    )


def engine_at(config: RunConfig, policy: Path, paths: RunPaths, head: Manifest | None) -> Engine:
    """The run's engine; one that is paid for knows the expense that the last revision states."""
    engine = open_engine(config, policy, paths.engine)
    if head is not None and isinstance(engine, Charging):
        engine.raise_to(head.rates)
    return engine


def position(session: Session, head: Manifest | None, start: Path) -> None:
    """Put the session where the run stands: before revision 0, or after its last one."""
    if head is None:
        shutil.copytree(start, session.stores.paths.staging / "policy")
        session.pending.record(Result(None, start_metrics(start)))
        return
    session.iteration = session.frozen_at = head.iteration
    session.fired = int(head.state["fired"])
    session.waiting = waits(head)
    session.pending = PendingRevision(revision=head.revision + 1)
    if isinstance(session.config.policy, EndpointPolicyConfig):  # it may be another one since an accepted change
        describe(session.config, session.config.policy, session.stores.paths.staging / "policy")
    lineage = session.stores.lineage
    restore_artifacts(session, head)
    if session.due.bank():
        scratch = session.stores.paths.scratch
        session.recent = episodes_since(lineage, head, session.fired, scratch)


def take_up_writing(
    config: RunConfig, stores: Stores, engine: Engine, head: Manifest | None
) -> AbstractContextManager[Writing | None]:
    """The writing of a run after its last revision, with the answers that arrived since."""
    path = stores.lineage.artifacts.path(WRITING) if head is not None and WRITING in head.artifacts else None
    journal = journal_after(head, stores.lineage, stores.paths.journal)
    writer_model, warn = stores.paths.engine / "writer_model", stores.reporter.warn
    kept = read_writing(path)
    if head is not None and is_budgeted(config):
        kept = replace(kept, spent=spent_before(stores.lineage, head, kept.spent, stores.paths.scratch, warn))
    return open_writing(config, engine, writer_model, journal, kept, warn)


def episodes_since(lineage: Lineage, head: Manifest, fired: int, scratch: Path) -> list[Episode]:
    """Training episodes of the revisions after ``fired``, oldest first, along the history that led to ``head``.

    Those that teach nothing are left out.
    """
    trail = trail_since(lineage.history.manifest, head, fired)
    found = (episode for revision in trail for episode in revision_artifacts.episodes_of(lineage, revision, scratch))
    return [episode for episode in found if episode.teaches]


def require_start(config: RunConfig, policy: Path, sizes: Mapping[str, int], path: Path) -> None:
    """Check that the disk has room for what a run writes until its next revision.

    Args:
        config: of the run.
        policy: directory of the policy that it starts from.
        sizes: bytes of each artifact of its last revision; empty before the first one, which copies the policy.
        path: directory of the run.

    Raises:
        CoevoError: it has not.
    """
    held = disk_usage(policy)
    trained = 0 if config.update is None else held + (sizes.get("optimizer") or _optimizer(config, policy))
    require_space(path, trained + (0 if sizes else held), f"the next revision of run {path.name!r}")


def _optimizer(config: RunConfig, policy: Path) -> int:
    """Bytes of the optimizer's state before there is one: two moments and, for half precision, float32 weights."""
    from coevo.models.policy.policy import PEFT_WEIGHTS, WEIGHTS
    from coevo.models.weights.tensor_file import read_layout

    assert config.update is not None
    path = next((policy / name for name in (PEFT_WEIGHTS, WEIGHTS) if (policy / name).is_file()), None)
    if path is None:
        return 0
    with path.open("rb") as file:
        specs = [spec for spec, _ in read_layout(file).values()]
    critic = sum(4 * _numbers(spec) + _state(spec) for spec in specs) if config.update.critic else 0
    return sum(map(_state, specs)) + critic


def _state(spec: "Spec") -> int:
    import torch

    return _numbers(spec) * (8 if spec.dtype == torch.float32 else 12)


def _numbers(spec: "Spec") -> int:
    return spec.bytes // spec.dtype.itemsize


def pruner(root: Path) -> Callable[[], None] | None:
    """Function that prunes a workspace's server; None if nothing is to be deleted.

    This is the case if the server is not the workspace's own, or ``COEVO_PREFECT_TASK_RUNS`` is 0.

    Raises:
        CoevoError: ``COEVO_PREFECT_TASK_RUNS`` is not a number.
    """
    written = os.environ.get(VARIABLE, str(KEEP))
    if not written.isdecimal():
        raise CoevoError(f"{VARIABLE}={written!r}: set the number of task runs that Prefect keeps, 0 for all")
    home = root.resolve() / "prefect"
    own = os.environ.get("PREFECT_HOME") == str(home)
    return partial(prune, home / "prefect.db", int(written)) if own and int(written) else None


def prune(database: Path, keep: int) -> None:
    """Delete the oldest finished task runs of all runs, with their states; the latest ``keep`` stay.

    Raises:
        sqlite3.Error: the database is busy for too long, or has an unexpected schema.
    """
    address = f"{database.as_uri()}?mode=rw"
    with closing(sqlite3.connect(address, uri=True, timeout=DATABASE_TIMEOUT_S)) as opened, opened:
        opened.execute("PRAGMA foreign_keys = ON")
        opened.execute(OLD, (keep,))
