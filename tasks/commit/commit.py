"""The commit and its publication, beside the rollout that follows: that changes nothing of a sealed revision."""

from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path

from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.retention import earlier
from coevo.lineage.revision.sparse import is_sparse
from coevo.lineage.superseded import remove_superseded
from coevo.tasks.commit.seal import Sealed, seal
from coevo.tasks.parts import Stores
from coevo.tasks.publish.alarms import alarms
from coevo.tasks.publish.mlflow.publication import Publication
from coevo.tasks.publish.reporter import Silent, in_stage, reporting_to
from coevo.tasks.revision_artifacts import EPISODES, write_episodes
from coevo.tasks.session import Session
from coevo.tasks.stage import stage
from coevo.utilities.errors import CoevoError
from coevo.utilities.free_space import require_space


class Committer:
    """Commits and publishes revisions, one at a time, in a thread of its own."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="commit")
        self._running: Future[None] | None = None
        self._label = ""

    def begin(self) -> None:
        """Seal the revision in the making, and begin to commit it."""
        sealed = seal(self._session)
        self._label = f"r{sealed.draft.revision} commit"
        self._running = self._thread.submit(copy_context().run, _keep, self._session.stores, sealed)

    def wait(self) -> None:
        """Wait until the sealed revision is committed; raises what the commit raised.

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


def _keep(stores: Stores, sealed: Sealed) -> None:
    with reporting_to(Silent()):  # the rollout beside it reports its progress
        manifest = commit(stores, sealed)
        if is_sparse(stores.lineage.sizes()):
            _remove_superseded(stores)
        publish(stores, sealed, manifest)


def _remove_superseded(stores: Stores) -> None:
    try:
        remove_superseded(stores.paths.workspace, stores.paths)
    except CoevoError as error:
        stores.reporter.warn(f"the optimizer state of earlier revisions stays: {error}")


@stage("commit")
def commit(stores: Stores, sealed: Sealed) -> Manifest:
    """Commit a sealed revision with all that is staged."""
    staging, bank = stores.paths.staging, stores.bank
    require_space(staging, stores.lineage.sizes().get(EPISODES, 0), "the commit of a revision")
    write_episodes(sealed.draft.episodes, staging / EPISODES)
    bank.merge(sealed.change)
    state = {**sealed.state, "tables": bank.hashes()}
    return stores.lineage.commit(artifacts(staging), state, {**sealed.observed, "tables": bank.versions()})


def artifacts(staging: Path) -> dict[str, Path]:
    """Staged artifacts by name; one that is not staged stays as it was in the revision before."""
    return {path.name: path for path in sorted(staging.iterdir()) if path.is_dir()}


@stage("publish")
def publish(stores: Stores, sealed: Sealed, manifest: Manifest) -> None:
    """Hand a committed revision to MLflow's publisher and Prefect's artifacts, and report it."""
    commit, draft = stores.lineage.commit_hash(manifest.revision), sealed.draft
    judged = list(sealed.change.judged)
    found = alarms(manifest, earlier(stores.lineage.manifest, manifest))
    publication = Publication(manifest, commit, sealed.entries, sealed.before, draft.episodes, judged, found)
    stores.publisher.submit(publication)
    if stores.artifacts is not None:
        stores.artifacts.submit(publication, draft.proposed)
    stores.reporter.revision(manifest)
    for alarm in found:
        stores.reporter.warn(alarm)
