"""The commit of a revision: freeze what was made, write it as one revision, publish it, and remove what it replaces.

It runs beside the next rollout, which changes nothing of a frozen revision.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import cache_lock, if_free, runs_lock_file
from coevo.lineage.objects.cache import Cache
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.retention import earlier
from coevo.lineage.revision.sparse import is_sparse
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.change import BankChange
from coevo.models.engines.requests import expense_of
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.tasks.parts import Stores
from coevo.tasks.pending_revision import PendingRevision
from coevo.tasks.publish.alarms import alarms
from coevo.tasks.publish.mlflow.publication import Publication
from coevo.tasks.publish.reporter import Silent, in_stage, reporting_to
from coevo.tasks.publish.turn_figures import write_turn_figures
from coevo.tasks.resumed_artifacts import stage_artifacts
from coevo.tasks.revision_artifacts import (
    EPISODES,
    HELD_OUT,
    write_episodes,
    write_held_out,
)
from coevo.tasks.run.approval import write_proposal
from coevo.tasks.session import Session
from coevo.tasks.stage import stage
from coevo.utilities.errors import CoevoError
from coevo.utilities.free_space import require_space


@dataclass(frozen=True)
class FrozenRevision:
    """A revision that is complete and not yet committed.

    Attributes:
        pending: what was made.
        change: what it changes in the bank.
        entries: the bank with it.
        before: the bank without.
        state: the manifest's, but for what only the commit knows.
        observed: the manifest's, likewise.
    """

    pending: PendingRevision
    change: BankChange
    entries: Sequence[Entry]
    before: Sequence[Entry]
    state: dict[str, object]
    observed: dict[str, object]


def freeze(session: Session) -> FrozenRevision:
    """End the revision in the making and begin the next one.

    State that the next rollout continues from is staged here; the commit stages the rest.
    """
    stage_artifacts(session)
    if session.pending.proposed is not None:
        write_proposal(session.pending.proposed, session.stores.paths.staging)
    before, entries = session.committed, session.bank.entries
    frozen = FrozenRevision(session.pending, session.bank.change(), entries, before, state(session), observed(session))
    session.next_revision()
    session.parts.worker.engine.forget()
    return frozen


def state(session: Session) -> dict[str, object]:
    """State of the manifest: equal, bit for bit, in every run with the same seed."""
    config = session.config
    return {
        "iteration": session.iteration,
        "fired": session.fired,
        **session.recorded,
        **({"weights": session.weights} if session.weights else {}),
        "accepted_change": session.accepted,
        "panels": {name: found.panel for name, found in session.pending.outcomes.items()},
        "outcomes": {name: found.solved for name, found in session.pending.outcomes.items()},
        "metrics": session.pending.metrics,
        **({} if config.approval.admission == "none" else {"waiting": session.pending.proposed is not None}),
    }


def observed(session: Session) -> dict[str, object]:
    """Measurements that differ between such runs; seconds of a commit count towards the next revision."""
    seconds = {f"cost/seconds/{stage}": spent for stage, spent in session.seconds.items()}
    seconds |= expense_of(session.parts.worker.engine)
    return {
        "run": session.stores.paths.name,
        "metrics": {**session.pending.rates, **seconds, "cost/seconds/wall": perf_counter() - session.since},
    }


class Committer:
    """Commits and publishes revisions, one at a time, in a thread of its own."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="commit")
        self._running: Future[None] | None = None
        self._label = ""

    def begin(self) -> None:
        """Seal the revision in the making, and begin to commit it."""
        frozen = freeze(self._session)
        self._label = f"r{frozen.pending.revision} commit"
        self._running = self._thread.submit(copy_context().run, _keep, self._session.stores, frozen)

    def wait(self) -> None:
        """Wait until the frozen revision is committed; raises what the commit raised.

        Until then nothing may be staged for the next revision.
        """
        running, self._running = self._running, None
        if running is not None:
            with in_stage(self._label):
                running.result()

    def close(self) -> None:
        """Wait likewise, and end the thread; call it whatever has happened since."""
        with self._thread:
            self.wait()


def _keep(stores: Stores, frozen: FrozenRevision) -> None:
    with reporting_to(Silent()):  # the rollout beside it reports its progress
        manifest = commit(stores, frozen)
        if is_sparse(stores.lineage.artifacts.sizes()):
            _remove_superseded(stores)
        publish(stores, frozen, manifest)


def _remove_superseded(stores: Stores) -> None:
    try:
        remove_superseded(stores.paths.workspace, stores.paths)
    except CoevoError as error:
        stores.reporter.warn(f"the optimizer state of earlier revisions stays: {error}")


@stage("commit")
def commit(stores: Stores, frozen: FrozenRevision) -> Manifest:
    """Commit a frozen revision with all that is staged."""
    staging, bank = stores.paths.staging, stores.bank
    require_space(staging, stores.lineage.artifacts.sizes().get(EPISODES, 0), "the commit of a revision")
    write_episodes(frozen.pending.episodes, staging / EPISODES)
    held_out = [each for found in frozen.pending.outcomes.values() for each in found.kept]
    if held_out:
        write_held_out(held_out, staging / HELD_OUT)
    bank.merge(frozen.change)
    # Before the commit, after which pages may read the revision.
    played = [*frozen.pending.episodes, *(each.episode for each in held_out)]
    keep_turn_figures(stores, played, frozen.pending.revision)
    state = {**frozen.state, "tables": bank.hashes()}
    return stores.lineage.commit(artifacts(staging), state, {**frozen.observed, "tables": bank.versions()})


def keep_turn_figures(stores: Stores, episodes: Sequence[Episode], revision: int) -> None:
    """Keep what a page shows of the turns beyond their record; a run needs none of it."""
    try:
        write_turn_figures(stores.paths, revision, episodes)
    except OSError as error:
        stores.reporter.warn(f"seconds and scores of the turns are not kept: {error.strerror or error}")


def artifacts(staging: Path) -> dict[str, Path]:
    """Staged artifacts by name; one that is not staged stays as it was in the revision before."""
    return {path.name: path for path in sorted(staging.iterdir()) if path.is_dir()}


@stage("publish")
def publish(stores: Stores, frozen: FrozenRevision, manifest: Manifest) -> None:
    """Hand a committed revision to MLflow's publisher and Prefect's artifacts, and report it."""
    commit, pending = stores.lineage.history.commit_hash(manifest.revision), frozen.pending
    judged = list(frozen.change.judged)
    found = alarms(manifest, earlier(stores.lineage.history.manifest, manifest))
    held_out = [each for outcomes in pending.outcomes.values() for each in outcomes.kept]
    publication = Publication(
        manifest, commit, frozen.entries, frozen.before, pending.episodes, judged, found, held_out
    )
    stores.publisher.submit(publication)
    if stores.artifacts is not None:
        stores.artifacts.submit(publication, pending.proposed)
    stores.reporter.revision(manifest)
    for alarm in found:
        stores.reporter.warn(alarm)


def remove_superseded(workspace: Workspace, run: RunPaths) -> int:
    """Remove what no revision of any run keeps of the artifacts in ``until_next`` of a run; return the number of files.

    Nothing is removed while this run is pushed, or another process adds objects, creates a run or collects: the next
    call removes it.

    Raises:
        CoevoError: the files of an artifact that a run keeps are unknown.
    """
    cache = Cache(workspace.cache)
    with ExitStack() as locks:
        free = locks.enter_context(if_free(runs_lock_file(workspace.root), run.root / "push.lock"))
        if not (free and locks.enter_context(cache_lock(workspace.cache, alone=True))):
            return 0
        kept = {content: paths.name for paths in workspace.directories() for content in _kept(workspace, paths)}
        gone = {
            content for content in _superseded(_history(workspace, run)) if cache.path(content).is_file()
        } - kept.keys()
        objects = cache.closure(dict.fromkeys(gone, run.name)) - cache.closure(kept) if gone else set()
        cache.remove(objects)
        return len(objects)


def _superseded(history: Iterable[Manifest]) -> Iterator[str]:
    return (manifest.artifacts[name] for manifest in history for name in manifest.until_next)


def _kept(workspace: Workspace, run: RunPaths) -> Iterator[str]:
    """Contents of the artifacts that a run keeps."""
    history = _history(workspace, run)
    if history:
        with Lineage.open(run.lineage, workspace.cache) as lineage:
            retained = lineage.history.retained()
        for revision in retained:
            yield from history[revision].kept(len(history) - 1).values()


def _history(workspace: Workspace, run: RunPaths) -> list[Manifest]:
    if not (run.lineage / ".git").is_dir():
        return []
    with Lineage.open(run.lineage, workspace.cache) as lineage:
        return lineage.history.log()
