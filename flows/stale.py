"""Flow runs that a killed process left behind in the state Running."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from prefect import runtime
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterName,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.states import Crashed

from configs.errors import CoevoError
from lineage.lock import in_use
from lineage.workspace import Workspace

UNFINISHED = (StateType.RUNNING, StateType.PENDING)
GRACE = timedelta(minutes=5)
"""In which a night that began has taken its run's lock: until then a free lock does not tell that it is dead."""


def mark_crashed(run: str) -> int:
    """Mark every other unfinished flow run of this run Crashed; returns how many. Only the holder of its lock may."""
    unfinished = FlowRunFilter(
        name=FlowRunFilterName(any_=[run]),
        state=_in(*UNFINISHED),
    )
    with get_client(sync_client=True) as client:
        stale = [found for found in client.read_flow_runs(flow_run_filter=unfinished) if str(found.id) != _own()]
        for found in stale:
            client.set_flow_run_state(found.id, Crashed(message="its process died; resumed since"), force=True)
    return len(stale)


def mark_dead_nights(place: Workspace) -> int:
    """Mark the unfinished nights of a workspace Crashed that no process plays any more; returns how many.

    Call it while no night goes on: one that has given its run's lock back may still publish.
    """
    return _mark(place, UNFINISHED)


def mark_unbegun_nights(place: Workspace) -> int:
    """The same for those that a worker took and did not come to begin, at any time."""
    return _mark(place, (StateType.PENDING,))


def _mark(place: Workspace, states: Sequence[StateType]) -> int:
    nights = FlowFilter(name=FlowFilterName(any_=["night"]))
    with get_client(sync_client=True) as client:
        found = client.read_flow_runs(flow_filter=nights, flow_run_filter=FlowRunFilter(state=_in(*states)))
        dead = [night for night in found if _is_dead(night, place)]
        for night in dead:
            client.set_flow_run_state(night.id, Crashed(message="no process plays it any more"), force=True)
    return len(dead)


def _is_dead(night: FlowRun, place: Workspace) -> bool:
    began = night.state.timestamp if night.state is not None else night.expected_start_time
    if night.parameters.get("workspace") != str(place.root) or began is None or datetime.now(UTC) - began < GRACE:
        return False
    try:
        return not in_use(place.run(night.parameters["run"]))
    except (CoevoError, OSError):  # a damaged run does not say who plays it
        return False


def _in(*states: StateType) -> FlowRunFilterState:
    return FlowRunFilterState(type=FlowRunFilterStateType(any_=list(states)))


def _own() -> str:
    return str(runtime.flow_run.id)
