"""Schedules of runs. Each is a Prefect deployment ``session/RUN`` on the work pool of workers.

A run has at most one session at a time: a session that is due while another one runs is cancelled. Of the sessions that
were due while no worker ran, the first one runs and the others are therefore cancelled.
"""

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from coevo.flows.servers.server_secret import home
from coevo.flows.servers.servers import prefect_in_use, use_prefect
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.client.schemas.objects import FlowRun
    from prefect.client.schemas.responses import DeploymentResponse

POOL = "coevo"
"""Pool of schedules that name none, for one worker."""
FLOW = "session"
SCHEDULER_TIMEOUT_S = 120.0
"""Seconds to wait for Prefect's scheduler to create the runs of a new schedule. The scheduler runs every 60 s, or every
15 s on a server that coevo started."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Times of a run's sessions, and the parameters of ``coevo.flows.sessions.scheduled_session.session``.

    Attributes:
        cron: five fields; empty for sessions that are begun once, see ``submit``.
        timezone: IANA name of the time zone.
        parameters: parameters of each session.
        pool: work pool. A session of another pool than ``POOL`` is begun again by another worker if it crashes.
    """

    cron: str
    timezone: str
    parameters: Mapping[str, Any]
    pool: str = POOL


@dataclass(frozen=True, slots=True)
class StoredSchedule:
    """Schedule as stored on the server.

    Attributes:
        run: name of the run.
        schedule: times and parameters.
        paused: True if no further session begins.
        next: start of the next session, or None.
        last: state of the last session that was not cancelled, or None.
    """

    run: str
    schedule: Schedule
    paused: bool
    next: datetime | None
    last: str | None


def add(workspace: Workspace, run: str, schedule: Schedule) -> StoredSchedule:
    """Create or replace the schedule of a run.

    Raises:
        CoevoError: the schedule is invalid, its notification block does not exist, the server has a schedule for a run
            of this name in another workspace, or does not plan the sessions.
    """
    with _client(workspace) as client:
        _check(schedule)
        _check_remote(_find(workspace, run, client), run, schedule.parameters.get("remote"))
        _ensure_pool(client, schedule.pool)
        _deploy(run, schedule)
        return _planned_soon(workspace, run, client)


def submit(workspace: Workspace, runs: Mapping[str, int], pool: str) -> list[str]:
    """Have the workers of a pool play runs side by side, one session each; those that wait or play stay as they are.

    Args:
        workspace: workspace of the runs; every worker sees it under this path.
        runs: number of iterations by the name of each run.
        pool: work pool.

    Returns:
        Runs whose session begins now.
    """
    with _client(workspace) as client:
        _ensure_pool(client, pool)
        return [run for run, iterations in runs.items() if _submitted(workspace, run, iterations, pool, client)]


def _submitted(workspace: Workspace, run: str, iterations: int, pool: str, client: "SyncPrefectClient") -> bool:
    from prefect.client.schemas.filters import FlowRunFilterState, FlowRunFilterStateType
    from prefect.client.schemas.objects import TERMINAL_STATES

    open_states = FlowRunFilterState(type=FlowRunFilterStateType(not_any_=list(TERMINAL_STATES)))
    found = _find(workspace, run, client)
    _check_remote(found, run, None)
    if found is not None and client.read_flow_runs(flow_run_filter=_filter(found, open_states), limit=1):
        return False
    if found is not None and found.schedules and found.work_pool_name != pool:
        raise CoevoError(f"run {run!r} has a schedule on the pool {found.work_pool_name}: remove it, or name that pool")
    if found is None or not found.schedules:
        terms = {"run": run, "workspace": str(workspace.root), "iterations": iterations}
        _deploy(run, Schedule("", "UTC", terms, pool))
    client.create_flow_run_from_deployment(_mine(workspace, run, client).id)
    return True


def prepare_server(workspace: Workspace, pool: str = POOL) -> None:
    """Prepare the server for sessions.

    Creates the work pool and detects crashes. Marks sessions that ended unseen as Crashed: they would block new ones.
    """
    with _client(workspace) as client:
        _ensure_pool(client, pool)
        from coevo.flows.servers.end_state import ensure_crash_detection, ensure_second_beginning
        from coevo.flows.servers.stale import mark_dead_sessions, mark_unbegun_sessions

        ensure_crash_detection()
        ensure_second_beginning()
        # Workers of a shared pool may play sessions now; heartbeats tell which of these are dead.
        (mark_dead_sessions if pool == POOL else mark_unbegun_sessions)(workspace)


def planned(workspace: Workspace) -> list[StoredSchedule]:
    """Schedules of a workspace by run."""
    if _has_none(workspace):
        return []
    with _client(workspace) as client:
        found = _all(client)
        return sorted((_planned(one, client) for one in found if _is_of(one, workspace)), key=lambda one: one.run)


def _has_none(workspace: Workspace) -> bool:
    """Report whether the database of the workspace's own server holds no deployment: no server need start for that."""
    if os.environ.get("PREFECT_API_URL") or os.environ.get("PREFECT_API_DATABASE_CONNECTION_URL"):
        return False
    database = home(workspace.root) / "prefect.db"
    if not database.is_file():
        return True
    try:
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as opened:
            return opened.execute("SELECT 1 FROM deployment LIMIT 1").fetchone() is None
    except sqlite3.Error:
        return False


def pause(workspace: Workspace, run: str) -> None:
    """Pause the schedule of a run: no further session begins.

    Raises:
        CoevoError: the run has no schedule.
    """
    with _scheduled(workspace, run) as (client, found):
        client.pause_deployment(found.id)


def resume(workspace: Workspace, run: str) -> StoredSchedule:
    """Resume the schedule of a run, and return it with its next session.

    Raises:
        CoevoError: the run has no schedule.
    """
    with _scheduled(workspace, run) as (client, found):
        client.resume_deployment(found.id)
        return _planned_soon(workspace, run, client)


def plan_anew(workspace: Workspace) -> None:
    """Plan the next sessions of all schedules from the present time, in place of those that are planned."""
    with _client(workspace) as client:
        for each in _all(client):
            if _is_of(each, workspace) and not each.paused:
                client.pause_deployment(each.id)  # deletes its planned sessions
                client.resume_deployment(each.id)


def remove(workspace: Workspace, run: str) -> None:
    """Delete the schedule of a run; a session that has begun continues.

    Raises:
        CoevoError: the run has no schedule.
    """
    with _scheduled(workspace, run) as (client, found):
        client.delete_deployment(found.id)


@contextmanager
def _scheduled(workspace: Workspace, run: str) -> "Iterator[tuple[SyncPrefectClient, DeploymentResponse]]":
    """The schedule of a run, with a client; where there can be none, no server starts to say so."""
    if _has_none(workspace):
        raise _no_schedule(workspace, run)
    with _client(workspace) as client:
        yield client, _mine(workspace, run, client)


@contextmanager
def _client(workspace: Workspace) -> Iterator["SyncPrefectClient"]:
    use_prefect(workspace.root)
    from prefect.client.orchestration import get_client

    with prefect_in_use(), get_client(sync_client=True) as client:
        shared = os.environ.get("PREFECT_API_DATABASE_CONNECTION_URL")
        if not shared and os.environ.get("PREFECT_HOME") == str(home(workspace.root)):
            _follow(workspace, client)
        yield client


def _follow(workspace: Workspace, client: "SyncPrefectClient") -> None:
    """Point the schedules on a workspace's own server to its present path: it may have been moved or copied."""
    from prefect.client.schemas.actions import DeploymentUpdate

    for each in _all(client):
        if not _is_of(each, workspace):
            parameters = {**each.parameters, "workspace": str(workspace.root)}
            client.update_deployment(each.id, DeploymentUpdate(parameters=parameters))


def _all(client: "SyncPrefectClient") -> "list[DeploymentResponse]":
    from prefect.client.schemas.filters import FlowFilter, FlowFilterName

    return client.read_deployments(flow_filter=FlowFilter(name=FlowFilterName(any_=[FLOW])))


def _check(schedule: Schedule) -> None:
    from prefect.client.schemas.schedules import CronSchedule
    from pydantic import ValidationError

    from coevo.flows.sessions.notification import block_of

    try:
        CronSchedule(cron=schedule.cron, timezone=schedule.timezone)
    except ValidationError:
        raise CoevoError(
            f"--cron: {schedule.cron!r} is not a schedule: write five fields, '0 2 * * *' for 2:00"
        ) from None
    if schedule.parameters.get("notify") is not None:
        block_of(schedule.parameters["notify"])


def _mine(workspace: Workspace, run: str, client: "SyncPrefectClient") -> "DeploymentResponse":
    found = _find(workspace, run, client)
    if found is None:
        raise _no_schedule(workspace, run)
    return found


def _no_schedule(workspace: Workspace, run: str) -> CoevoError:
    """Error for a run without a schedule; a name that is no run's raises another one, with the names that are."""
    workspace.existing(run)
    return CoevoError(f"run {run!r} has no schedule: make one with `coevo schedule add {run}`")


def _find(workspace: Workspace, run: str, client: "SyncPrefectClient") -> "DeploymentResponse | None":
    """Deployment of a run of this workspace, or None."""
    from prefect.exceptions import ObjectNotFound

    try:
        found = client.read_deployment_by_name(f"{FLOW}/{run}")
    except ObjectNotFound:
        return None
    if not _is_of(found, workspace):
        owner = found.parameters.get("workspace")
        raise CoevoError(f"this server has a schedule of a run {run!r} in {owner}: give this run another name")
    return found


def _check_remote(found: "DeploymentResponse | None", run: str, remote: str | None) -> None:
    """Refuse to replace the schedule of another run of this name, which is shared at another address."""
    known = None if found is None else found.parameters.get("remote")
    if known is not None and known != remote:
        raise CoevoError(f"this server has a schedule of a run {run!r} at {known}: give this run another name")


def _is_of(deployment: "DeploymentResponse", workspace: Workspace) -> bool:
    """A schedule of a run at a remote belongs to every workspace that uses the server."""
    return bool(deployment.parameters.get("remote") or deployment.parameters.get("workspace") == str(workspace.root))


def _ensure_pool(client: "SyncPrefectClient", pool: str) -> None:
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectAlreadyExists
    from prefect.workers.process import ProcessWorker

    template = ProcessWorker.get_default_base_job_template()
    try:
        client.create_work_pool(WorkPoolCreate(name=pool, type=ProcessWorker.type, base_job_template=template))
    except ObjectAlreadyExists:
        return


def _deploy(run: str, schedule: Schedule) -> None:
    from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
    from prefect.deployments.runner import RunnerDeployment
    from prefect.schedules import Cron
    from prefect.types.entrypoint import EntrypointType

    from coevo.flows.servers.end_state import SHARED
    from coevo.flows.sessions.scheduled_session import session

    RunnerDeployment.from_flow(
        session,
        name=run,
        schedules=[Cron(schedule.cron, timezone=schedule.timezone)] if schedule.cron else [],
        concurrency_limit=ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW),
        parameters=dict(schedule.parameters),
        work_pool_name=schedule.pool,
        tags=[] if schedule.pool == POOL else [SHARED],
        entrypoint_type=EntrypointType.MODULE_PATH,
        paused=False,
    ).apply()


def _planned_soon(workspace: Workspace, run: str, client: "SyncPrefectClient") -> StoredSchedule:
    """Wait until the next session is planned; a server can be healthy and plan none."""
    give_up = time.monotonic() + SCHEDULER_TIMEOUT_S
    found = _planned(_mine(workspace, run, client), client)
    while found.next is None:
        if time.monotonic() > give_up:
            raise CoevoError(
                f"Prefect planned no session of {run!r} within {SCHEDULER_TIMEOUT_S:.0f} s: choose a time within the "
                "next 100 days, or see Prefect's log and `coevo doctor`"
            )
        time.sleep(0.5)
        found = _planned(_mine(workspace, run, client), client)
    return found


def _planned(deployment: "DeploymentResponse", client: "SyncPrefectClient") -> StoredSchedule:
    when = deployment.schedules[0].schedule if deployment.schedules else None
    cron, timezone = getattr(when, "cron", ""), getattr(when, "timezone", None) or "UTC"
    ahead, behind = _sessions(deployment, client)
    return StoredSchedule(
        run=deployment.name,
        schedule=Schedule(cron, timezone, deployment.parameters, deployment.work_pool_name or POOL),
        paused=deployment.paused,
        next=None if ahead is None else ahead.expected_start_time,
        last=None if behind is None or behind.state is None else behind.state.name,
    )


def _sessions(deployment: "DeploymentResponse", client: "SyncPrefectClient") -> "tuple[FlowRun | None, FlowRun | None]":
    """Next session and last session, None if there is none."""
    from prefect.client.schemas.filters import FlowRunFilterState, FlowRunFilterStateType
    from prefect.client.schemas.objects import StateType
    from prefect.client.schemas.sorting import FlowRunSort

    scheduled, refused = StateType.SCHEDULED, StateType.CANCELLED
    ahead = _filter(deployment, FlowRunFilterState(type=FlowRunFilterStateType(any_=[scheduled])))
    behind = _filter(deployment, FlowRunFilterState(type=FlowRunFilterStateType(not_any_=[scheduled, refused])))
    soonest, latest = FlowRunSort.EXPECTED_START_TIME_ASC, FlowRunSort.EXPECTED_START_TIME_DESC
    return (
        next(iter(client.read_flow_runs(flow_run_filter=ahead, sort=soonest, limit=1)), None),
        next(iter(client.read_flow_runs(flow_run_filter=behind, sort=latest, limit=1)), None),
    )


def _filter(deployment: "DeploymentResponse", state: Any) -> "FlowRunFilter":
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterDeploymentId

    return FlowRunFilter(deployment_id=FlowRunFilterDeploymentId(any_=[deployment.id]), state=state)
