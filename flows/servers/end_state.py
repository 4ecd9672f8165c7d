"""Last state of a flow run: its name is the status of the run, its message has the stage, the reason and the time."""

from pathlib import Path
from typing import Any

from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.states import Cancelled, Completed

from coevo.flows.history.standing import standing
from coevo.lineage.workspace import Workspace
from coevo.tasks.cost import time_line

IN_ORDER = ("Finished", "Waiting", "Stopped")
"""Names of states of a flow run that ended in order."""
INTERRUPTED = "Execution was aborted by an interrupt signal."
"""Message with which Prefect marks a flow run Crashed after Ctrl-C."""


def name_end(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Replace the state of a flow run that ended in order, by an interrupt too, which Prefect takes for a crash."""
    if not (state.is_completed() or state.message == INTERRUPTED):
        return
    place = Workspace(Path(flow_run.parameters["workspace"]))
    found = standing(place.run(flow_run.parameters["run"]), place)
    message = f"{found.status}; {time_line(found.revisions)}"
    named = Completed if state.is_completed() else Cancelled
    ended: State[Any] = named(name=found.status.status.capitalize(), message=message)
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(flow_run.id, ended, force=True)
