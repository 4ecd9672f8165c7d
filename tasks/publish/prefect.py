"""Prefect's pages of a run: tags, a log line and an artifact per revision, their list, proposals, progress, and alarms.

A separate thread creates them from copies of committed data: nothing waits for them, and a failure is a warning. The
same thread prunes the server's task runs.

Tags are set by a request, not by ``prefect.tags``: each task within would have them as well, and would ask for their
concurrency slots, which makes it 1.5 times as long. Log lines are sent by requests, since Prefect's logging is off, see
``coevo.flows.servers.servers``.

Prefect lists artifacts by their random ids, for a flow run as on the page *Artifacts*; only the page of one key lists
them by time. Revisions are therefore versions of one key, ``RUN-revision``. They do not belong to the flow run, whose
tab *Artifacts* shows their list, ``RUN-history``: it links them in order.

Alarms are log lines and, of the kinds in ``AUTOMATIONS``, events. Each has an automation on the server without an
action, to which a user adds one (a notification, for example); coevo leaves it as it then is.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from logging import INFO, WARNING
from typing import Any
from uuid import UUID

from httpx import HTTPStatusError, TransportError
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import ArtifactCreate, ArtifactUpdate, LogCreate
from prefect.context import FlowRunContext
from prefect.events import Event, EventTrigger, RelatedResource, Resource
from prefect.events.actions import DoNothing
from prefect.events.schemas.automations import AutomationCore, Posture

from coevo.memory.admission.pending_admission import Pending
from coevo.tasks.publish.alarms import FELL, IDLE
from coevo.tasks.publish.mlflow.publication import Publication
from coevo.tasks.publish.proposal_page import proposal_page
from coevo.tasks.publish.reporter import headline
from coevo.tasks.publish.revision_page import page

LOGGER = "prefect.flow_runs"
"""Name of Prefect's logger of flow runs."""
IDLE_WRITER, FALL = "coevo.alarm.idle-writer", "coevo.alarm.success-fell"
AUTOMATIONS = {
    "coevo: a writer is idle": (IDLE_WRITER, "Its firings have changed nothing in the bank for a while."),
    "coevo: a run waits for approval": ("prefect.flow-run.Waiting", "`coevo approve --list` shows what for."),
    "coevo: success fell beyond noise": (FALL, "`coevo explain RUN` says why, `coevo rollback` goes back."),
}
"""Event and description of each automation, by its name."""
FLOWS = ("session", "coevolve")
"""Flows whose last state has the status of a run."""


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
            ensure_automations()

    def _make(self, publication: Publication, proposed: Pending | None) -> None:
        name = f"{self._run}@{publication.revision}"
        with self._warning(f"no artifact of revision {publication.revision}"), get_client(sync_client=True) as client:
            client.create_logs([self._line(publication), *self._alarms(publication)])
            if events := list(self._events(publication)):
                client.request("POST", "/events", json=events)
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

    def _alarms(self, publication: Publication) -> Iterator[LogCreate]:
        when = datetime.fromtimestamp(publication.timestamp / 1000, UTC)
        for alarm in publication.alarms:
            yield LogCreate(name=LOGGER, level=WARNING, message=alarm, timestamp=when, flow_run_id=self._flow_run)

    def _events(self, publication: Publication) -> Iterator[dict[str, Any]]:
        """Events of the alarms that automations react to, at most one of each kind."""
        lines = {name: alarm for alarm in reversed(publication.alarms) if (name := event_of(alarm)) is not None}
        for name, alarm in lines.items():
            resource = {"prefect.resource.id": f"coevo.run.{self._run}", "prefect.resource.name": self._run}
            flow_run = RelatedResource(
                {"prefect.resource.id": f"prefect.flow-run.{self._flow_run}", "prefect.resource.role": "flow-run"}
            )
            said = {"message": alarm, "revision": publication.revision}
            made = Event(event=name, resource=Resource(resource), related=[flow_run], payload=said)
            yield made.model_dump(mode="json")

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


def event_of(alarm: str) -> str | None:
    """Event of an alarm's line; None where no automation reacts to it."""
    if alarm.startswith(IDLE):
        return IDLE_WRITER
    return FALL if alarm.startswith(FELL) else None


def ensure_automations() -> None:
    """Create the automations of alarms that the server lacks; those that it has stay as their user left them."""
    with get_client(sync_client=True) as client:
        for name, (event, about) in AUTOMATIONS.items():
            if not client.read_automations_by_name(name):
                of_runs = {"prefect.resource.name": list(FLOWS), "prefect.resource.role": "flow"}
                related = of_runs if event.startswith("prefect.") else {}
                trigger = EventTrigger(
                    expect={event}, match_related=related, posture=Posture.Reactive, threshold=1, within=timedelta(0)
                )
                made = AutomationCore(name=name, description=about, trigger=trigger, actions=[DoNothing()])
                client.create_automation(made)


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
