"""Flow runs that a killed process left behind in the state Running."""

from prefect import runtime
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterName,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.states import Crashed


def mark_crashed(run: str) -> int:
    """Mark every other unfinished flow run of this run Crashed; returns how many. Only the holder of its lock may."""
    unfinished = FlowRunFilter(
        name=FlowRunFilterName(any_=[run]),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING, StateType.PENDING])),
    )
    with get_client(sync_client=True) as client:
        stale = [found for found in client.read_flow_runs(flow_run_filter=unfinished) if str(found.id) != _own()]
        for found in stale:
            client.set_flow_run_state(found.id, Crashed(message="its process died; resumed since"), force=True)
    return len(stale)


def _own() -> str:
    return str(runtime.flow_run.id)
