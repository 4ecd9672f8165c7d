"""Prefect's pages of a run: tags, a log line and an artifact per revision, their list, proposals, and progress.

A separate thread creates them from copies of committed data: nothing waits for them, and a failure is a warning. The
same thread prunes the server's task runs.

Tags are set by a request, not by ``prefect.tags``: each task within would have them as well, and would ask for their
concurrency slots, which makes it 1.5 times as long. Log lines are sent by requests, since Prefect's logging is off, see
``coevo.flows.servers.servers``.

Prefect lists artifacts by their random ids, for a flow run as on the page *Artifacts*; only the page of one key lists
them by time. Revisions are therefore versions of one key, ``RUN-revision``. They do not belong to the flow run, whose
tab *Artifacts* shows their list, ``RUN-history``: it links them in order.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from datetime import UTC, datetime
from logging import INFO
from uuid import UUID

from httpx import HTTPStatusError, TransportError
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import ArtifactCreate, ArtifactUpdate, LogCreate
from prefect.context import FlowRunContext

from coevo.memory.admission.pending_admission import Pending
from coevo.tasks.publish.mlflow.publication import Publication
from coevo.tasks.publish.proposal_page import proposal_page
from coevo.tasks.publish.reporter import headline
from coevo.tasks.publish.revision_page import page

LOGGER = "prefect.flow_runs"
"""Name of Prefect's logger of flow runs."""


class FlowPages:
    """Pages of one flow run.

    Args:
        run: name of the run.
        iterations: iterations of the whole run.
        flow_run: flow run that they belong to.
        warn: receives a line when requests begin to fail.
        prune: deletes old task runs from the server, see ``coevo.tasks.run.open_run``.
    """

    def __init__(
        self,
        run: str,
        iterations: int,
        flow_run: UUID,
        warn: Callable[[str], None],
        prune: Callable[[], None] | None = None,
    ) -> None:
        self._run = run
        self._iterations = iterations
        self._flow_run = flow_run
        self._warn = warn
        self._prune = prune
        self._failed_to_prune = False
        self._failing = False
        self._history = ""
        self._kept: dict[str | None, UUID] = {}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="artifacts")

    def tag(self, recipe: str) -> None:
        """Schedule the tags of the flow run."""
        self._thread.submit(copy_context().run, self._tag, recipe)

    def submit(self, publication: Publication, proposed: Pending | None = None) -> None:
        """Schedule the pages of a committed revision and of a proposal that is pending there."""
        self._thread.submit(copy_context().run, self._make, publication, proposed)

    def close(self) -> None:
        """Wait for the scheduled pages."""
        self._thread.shutdown()

    def _tag(self, recipe: str) -> None:
        with self._warning("no tags"):
            tag(self._run, recipe)

    def _make(self, publication: Publication, proposed: Pending | None) -> None:
        name = f"{self._run}@{publication.revision}"
        with self._warning(f"no artifact of revision {publication.revision}"), get_client(sync_client=True) as client:
            client.create_logs([self._line(publication)])
            made = client.create_artifact(self._artifact("revision", page(self._run, publication), name, None))
            if proposed is not None:
                asked = proposal_page(name, proposed, publication.entries or (), publication.episodes)
                client.create_artifact(self._artifact("approval", asked, name, self._flow_run))
            self._history += f"- [{headline(publication.manifest)}](../artifact/{made.id})\n"
            self._update(client, publication.manifest.iteration)
        if self._prune is not None:
            self._try(self._prune)

    def _try(self, prune: Callable[[], None]) -> None:
        try:
            prune()
        except sqlite3.Error as error:
            if not self._failed_to_prune:
                self._warn(f"Prefect keeps old task runs, its database grows: {error}; tried again with each revision")
            self._failed_to_prune = True

    def _line(self, publication: Publication) -> LogCreate:
        when = datetime.fromtimestamp(publication.timestamp / 1000, UTC)
        said = headline(publication.manifest)
        return LogCreate(name=LOGGER, level=INFO, message=said, timestamp=when, flow_run_id=self._flow_run)

    def _update(self, client: SyncPrefectClient, iteration: int) -> None:
        """Show the list of revisions and the progress."""
        share = 100.0 * iteration / max(1, self._iterations)
        history = self._artifact("history", self._history, f"Revisions of {self._run}", self._flow_run)
        progress = self._artifact("progress", share, self._run, self._flow_run, "progress")
        for made in (history, progress):
            if made.key in self._kept:
                client.update_artifact(self._kept[made.key], ArtifactUpdate(data=made.data))
            else:
                self._kept[made.key] = client.create_artifact(made).id

    def _artifact(
        self, what: str, data: object, about: str, flow_run: UUID | None, kind: str = "markdown"
    ) -> ArtifactCreate:
        key = key_of(self._run, what)
        return ArtifactCreate(key=key, type=kind, data=data, description=about, flow_run_id=flow_run)

    @contextmanager
    def _warning(self, what: str) -> Iterator[None]:
        """Warn about a request that fails, unless the one before has failed as well."""
        try:
            yield
            self._failing = False
        except (TransportError, HTTPStatusError) as error:
            if not self._failing:
                self._warn(f"Prefect has {what}: {error}; the run continues and tries again with each revision")
            self._failing = True


@contextmanager
def artifacts_of(
    run: str, iterations: int, recipe: str, warn: Callable[[str], None], prune: Callable[[], None] | None = None
) -> Iterator[FlowPages | None]:
    """``FlowPages`` of the current flow run, which gets run and recipe as tags; None outside of a flow run."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        yield None
        return
    artifacts = FlowPages(run, iterations, context.flow_run.id, warn, prune)
    artifacts.tag(recipe)
    try:
        yield artifacts
    finally:
        artifacts.close()


def tag(run: str, recipe: str) -> None:
    """Add the name of a run and of its recipe to the tags of the current flow run."""
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None:
        with get_client(sync_client=True) as client:
            client.update_flow_run(context.flow_run.id, tags=sorted({*context.flow_run.tags, run, recipe}))


def key_of(run: str, what: str) -> str:
    """Key of a run's artifact."""
    return f"{dashed(run)}-{what}"


def dashed(run: str) -> str:
    """Name of a run as a part of a key: Prefect allows lower-case letters, digits and dashes."""
    return re.sub("[^a-z0-9]+", "-", run.lower()).strip("-")
