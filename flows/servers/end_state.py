"""Last states of flow runs: the status of the run at its end, and Crashed for runs whose process was killed."""

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.events import EventTrigger
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore, Posture
from prefect.exceptions import ObjectNotFound
from prefect.states import Cancelled, Completed

from coevo.envs.registry import find
from coevo.flows.history.run_summaries import RunSummary, run_summaries, run_summary
from coevo.flows.servers.servers import use_prefect
from coevo.flows.servers.stale import mark_crashed
from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import Workspace
from coevo.tasks.cost import time_line, wall_seconds
from coevo.tasks.publish.catchup import tracker_of
from coevo.tasks.publish.prefect import FLOWS
from coevo.utilities.errors import CoevoError

IN_ORDER = ("Finished", "Waiting", "Stopped")
"""Names of states of a flow run that ended in order."""
INTERRUPTED = "Execution was aborted by an interrupt signal."
"""Message with which Prefect marks a flow run Crashed after Ctrl-C."""
NAME = "coevo: mark dead runs Crashed"
AGAIN = "coevo: begin crashed sessions of shared pools again"
SHARED = "coevo-shared-pool"
"""Tag of the sessions of a pool with several workers."""
SILENCE = timedelta(seconds=120)
"""Time without heartbeats after which a run counts as dead: four heartbeats, since a busy machine sends some late."""
ENDS = ("Completed", "Failed", "Cancelled", "Crashed", *IN_ORDER)


def name_end(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Replace the state of a flow run that ended in order, by an interrupt too, which Prefect takes for a crash.

    A scheduled session that played its iterations is Completed, whatever the run still has to do; one whose run waits
    for approval is Waiting.
    """
    if not (state.is_completed() or state.message == INTERRUPTED):
        return
    workspace = session_workspace(**flow_run.parameters)
    found = run_summary(workspace.run(flow_run.parameters["run"]), workspace)
    if flow.name == "session" and found.status.status != "waiting":
        return
    message = f"{found.status}; {time_line(found.revisions)}"
    named = Completed if state.is_completed() else Cancelled
    ended: State[Any] = named(name=found.status.status.capitalize(), message=message)
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(flow_run.id, ended, force=True)


def session_workspace(workspace: str, remote: str | None = None, **_: object) -> Workspace:
    """Workspace of a flow run by its parameters: that of the worker where the run is at a remote."""
    return Workspace(Path(workspace if remote is None else os.environ["COEVO_WORKSPACE"]))


def name_crashed(workspace: Workspace) -> list[str]:
    """Tell MLflow and Prefect of the runs whose process was killed; return a line for each that could not be told."""
    crashed = [found for found in run_summaries(workspace) if found.status.status == "crashed"]
    if crashed:
        use_prefect(workspace.root)
    return [line for found in crashed for line in _name_crashed(found, workspace)]


def _name_crashed(found: RunSummary, workspace: Workspace) -> Iterator[str]:
    try:
        workspace.trust.demand(found.paths.name, found.paths.read_config())
        with writer_lock(found.paths):
            tracker = tracker_of(workspace.root, found.paths, find(found.paths.read_config().env.type).name)
            tracker.finish(found.status, sum(map(wall_seconds, found.revisions)))
            mark_crashed(found.paths.name, str(workspace.root))
    except CoevoError as error:
        yield f"{found.paths.name}: {error}"


def ensure_crash_detection(name: str = NAME, silence: timedelta = SILENCE) -> UUID:
    """Id of the automation of this name; it is created, or brought up to date where an earlier version made it."""
    return _ensured(_automation(name, silence))


def ensure_second_beginning() -> UUID:
    """Id of the automation that lets another worker begin a crashed session of a shared pool again.

    The server decides it, once for each crash, so that no session begins twice.
    """
    trigger = EventTrigger(
        expect={"prefect.flow-run.Crashed"},
        match={"prefect.resource.id": "prefect.flow-run.*"},
        match_related={"prefect.resource.role": "tag", "prefect.resource.id": f"prefect.tag.{SHARED}"},
        for_each={"prefect.resource.id"},
        posture=Posture.Reactive,
        threshold=1,
    )
    message = "its worker died: another one begins it again, from what was committed"
    action = ChangeFlowRunState(state=StateType.SCHEDULED, message=message)
    return _ensured(AutomationCore(name=AGAIN, description=message, trigger=trigger, actions=[action]))


def _ensured(wanted: AutomationCore) -> UUID:
    with get_client(sync_client=True) as client:
        for known in client.read_automations_by_name(wanted.name):
            if known.description != wanted.description:
                client.update_automation(known.id, wanted)
            return known.id
        client.create_automation(wanted)
        kept, *others = sorted(client.read_automations_by_name(wanted.name), key=lambda each: str(each.id))
        for other in others:  # of a worker that started at the same moment and keeps the same one
            with suppress(ObjectNotFound):
                client.delete_automation(other.id)
        return kept.id


def _automation(name: str, silence: timedelta) -> AutomationCore:
    heartbeat = "prefect.flow-run.heartbeat"
    trigger = EventTrigger(
        after={heartbeat, "prefect.flow-run.Running"},  # a process can die before its first heartbeat
        expect={heartbeat, *(f"prefect.flow-run.{end}" for end in ENDS)},
        match={"prefect.resource.id": "prefect.flow-run.*"},
        match_related={"prefect.resource.role": "flow", "prefect.resource.name": list(FLOWS)},
        for_each={"prefect.resource.id"},
        posture=Posture.Proactive,
        threshold=1,
        within=silence,
    )
    message = "its heartbeats stopped or never came; what it committed is safe, and the next session continues it"
    action = ChangeFlowRunState(state=StateType.CRASHED, message=message)
    return AutomationCore(name=name, description=message, trigger=trigger, actions=[action])
