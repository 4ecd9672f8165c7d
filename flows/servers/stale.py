"""Flow runs that a killed process left in the state Running."""

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

from coevo.lineage.lock import in_use
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

UNFINISHED = (StateType.RUNNING, StateType.PENDING)
LOCK_TIMEOUT = timedelta(minutes=5)
"""Time within which a started session takes its run's lock; until then, a free lock does not mean that it is dead."""


def mark_crashed(run: str, workspace: str) -> int:
    """Mark every other unfinished flow run of a run Crashed; return their number. The caller holds the run's lock.

    Runs of this name in other workspaces, which may share the server, are left alone.
    """
    unfinished = FlowRunFilter(
        name=FlowRunFilterName(any_=[run]),
        state=_in(*UNFINISHED),
    )
    with get_client(sync_client=True) as client:
        found = client.read_flow_runs(flow_run_filter=unfinished)
        stale = [each for each in found if each.parameters.get("workspace") == workspace and str(each.id) != _own()]
        for each in stale:
            client.set_flow_run_state(each.id, Crashed(message="its process was killed"), force=True)
    return len(stale)


def mark_dead_sessions(workspace: Workspace) -> int:
    """Mark unfinished sessions of a workspace without a process Crashed; return their number.

    Call this while no session runs: one that has released its run's lock may still publish.
    """
    return _mark(workspace, UNFINISHED)


def mark_unbegun_sessions(workspace: Workspace) -> int:
    """Mark sessions Crashed that a worker took and never began; return their number. Safe at any time."""
    return _mark(workspace, (StateType.PENDING,))


def _mark(workspace: Workspace, states: Sequence[StateType]) -> int:
    sessions = FlowFilter(name=FlowFilterName(any_=["session"]))
    with get_client(sync_client=True) as client:
        found = client.read_flow_runs(flow_filter=sessions, flow_run_filter=FlowRunFilter(state=_in(*states)))
        dead = [session for session in found if _is_dead(session, workspace)]
        for session in dead:
            client.set_flow_run_state(session.id, Crashed(message="no process plays it any more"), force=True)
    return len(dead)


def _is_dead(session: FlowRun, workspace: Workspace) -> bool:
    began = session.state.timestamp if session.state is not None else session.expected_start_time
    if (
        session.parameters.get("workspace") != str(workspace.root)
        or session.parameters.get("remote") is not None  # its process may run on another machine
        or began is None
        or datetime.now(UTC) - began < LOCK_TIMEOUT
    ):
        return False
    try:
        return not in_use(workspace.run(session.parameters["run"]))
    except (CoevoError, OSError):  # the lock of a damaged run cannot be read
        return False


def _in(*states: StateType) -> FlowRunFilterState:
    return FlowRunFilterState(type=FlowRunFilterStateType(any_=list(states)))


def _own() -> str:
    return str(runtime.flow_run.id)
