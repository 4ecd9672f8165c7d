"""Schedules: which run goes on when. Each is a Prefect deployment ``night/RUN`` on the work pool of a worker.

At most one night of a run goes on at a time; one that would begin meanwhile is cancelled. Of the nights that fell due
while no worker was there, the first one runs and the others are cancelled, for the same reason.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from configs.errors import CoevoError
from flows.servers import prefect_in_use, use_prefect
from lineage.workspace import Workspace

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.client.schemas.objects import FlowRun
    from prefect.client.schemas.responses import DeploymentResponse

POOL = "coevo"
FLOW = "night"
PATIENCE = 120.0
"""Seconds within which Prefect's scheduler makes the runs of a new schedule: it comes by every minute, or every 15 s on
a server of ours."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a run goes on, and with which parameters of ``flows.night.night``.

    Attributes:
        cron: five fields.
        timezone: IANA name that they are read in.
        parameters: of each night.
    """

    cron: str
    timezone: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Planned:
    """A schedule as the server has it.

    Attributes:
        run: name of the run.
        schedule: when and with what.
        paused: whether no night begins.
        next: when the next one begins, if one is planned.
        last: state of the last one that was not cancelled, as one is that falls due while another is under way.
    """

    run: str
    schedule: Schedule
    paused: bool
    next: datetime | None
    last: str | None


def add(place: Workspace, run: str, schedule: Schedule) -> Planned:
    """Make the schedule of a run, or replace it.

    Raises:
        CoevoError: it cannot be read, there is no such block to notify, the server has a schedule of a run of this name
            in another workspace, or does not plan its nights.
    """
    with _client(place) as client:
        _check(schedule)
        _find(place, run, client)
        _ensure_pool(client)
        _deploy(run, schedule)
        return _planned_soon(place, run, client)


def prepare_server(place: Workspace) -> None:
    """Give the server what nights need of it, and mark those Crashed that ended unseen: they would keep others out."""
    with _client(place) as client:
        _ensure_pool(client)
        from flows.crashes import ensure_crash_detection
        from flows.stale import mark_dead_nights

        ensure_crash_detection()
        mark_dead_nights(place)


def planned(place: Workspace) -> list[Planned]:
    """The schedules of a workspace, by run."""
    with _client(place) as client:
        from prefect.client.schemas.filters import FlowFilter, FlowFilterName

        found = client.read_deployments(flow_filter=FlowFilter(name=FlowFilterName(any_=[FLOW])))
        return sorted((_planned(one, client) for one in found if _is_of(one, place)), key=lambda one: one.run)


def pause(place: Workspace, run: str) -> None:
    """Let no further night of a run begin.

    Raises:
        CoevoError: it has no schedule.
    """
    with _client(place) as client:
        client.pause_deployment(_mine(place, run, client).id)


def resume(place: Workspace, run: str) -> Planned:
    """Let the nights of a run begin again.

    Raises:
        CoevoError: it has no schedule.
    """
    with _client(place) as client:
        client.resume_deployment(_mine(place, run, client).id)
        return _planned_soon(place, run, client)


def remove(place: Workspace, run: str) -> None:
    """Forget the schedule of a run; a night that goes on goes on.

    Raises:
        CoevoError: it has no schedule.
    """
    with _client(place) as client:
        client.delete_deployment(_mine(place, run, client).id)


@contextmanager
def _client(place: Workspace) -> Iterator["SyncPrefectClient"]:
    use_prefect(place.root)
    from prefect.client.orchestration import get_client

    with prefect_in_use(), get_client(sync_client=True) as client:
        yield client


def _check(schedule: Schedule) -> None:
    from prefect.client.schemas.schedules import CronSchedule
    from pydantic import ValidationError

    from flows.notification import block_of

    try:
        CronSchedule(cron=schedule.cron, timezone=schedule.timezone)
    except ValidationError:
        raise CoevoError(f"--cron: {schedule.cron!r} is no schedule: write five fields, '0 2 * * *' for 2:00") from None
    if schedule.parameters.get("notify") is not None:
        block_of(schedule.parameters["notify"])


def _mine(place: Workspace, run: str, client: "SyncPrefectClient") -> "DeploymentResponse":
    found = _find(place, run, client)
    if found is None:
        raise CoevoError(f"run {run!r} has no schedule: make one with `coevo schedule add {run}`")
    return found


def _find(place: Workspace, run: str, client: "SyncPrefectClient") -> "DeploymentResponse | None":
    """The deployment of a run of this workspace, if there is one."""
    from prefect.exceptions import ObjectNotFound

    try:
        found = client.read_deployment_by_name(f"{FLOW}/{run}")
    except ObjectNotFound:
        return None
    if not _is_of(found, place):
        owner = found.parameters.get("workspace")
        raise CoevoError(f"this server has a schedule of a run {run!r} in {owner}: give this run another name")
    return found


def _is_of(deployment: "DeploymentResponse", place: Workspace) -> bool:
    return bool(deployment.parameters.get("workspace") == str(place.root))


def _ensure_pool(client: "SyncPrefectClient") -> None:
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectAlreadyExists
    from prefect.workers.process import ProcessWorker

    template = ProcessWorker.get_default_base_job_template()
    try:
        client.create_work_pool(WorkPoolCreate(name=POOL, type=ProcessWorker.type, base_job_template=template))
    except ObjectAlreadyExists:
        return


def _deploy(run: str, schedule: Schedule) -> None:
    from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
    from prefect.deployments.runner import RunnerDeployment
    from prefect.schedules import Cron
    from prefect.types.entrypoint import EntrypointType

    from flows.night import night

    RunnerDeployment.from_flow(
        night,
        name=run,
        schedules=[Cron(schedule.cron, timezone=schedule.timezone)],
        concurrency_limit=ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW),
        parameters=dict(schedule.parameters),
        work_pool_name=POOL,
        entrypoint_type=EntrypointType.MODULE_PATH,
        paused=False,
    ).apply()


def _planned_soon(place: Workspace, run: str, client: "SyncPrefectClient") -> Planned:
    """The schedule once its next night is planned: a server can be healthy and plan none."""
    give_up = time.monotonic() + PATIENCE
    found = _planned(_mine(place, run, client), client)
    while found.next is None:
        if time.monotonic() > give_up:
            raise CoevoError(
                f"Prefect plans 100 days ahead, and planned no night of {run!r} within {PATIENCE:.0f} s: name a time "
                "that comes sooner, or see its log and `coevo doctor`"
            )
        time.sleep(0.5)
        found = _planned(_mine(place, run, client), client)
    return found


def _planned(deployment: "DeploymentResponse", client: "SyncPrefectClient") -> Planned:
    when = deployment.schedules[0].schedule if deployment.schedules else None
    cron, timezone = getattr(when, "cron", ""), getattr(when, "timezone", None) or "UTC"
    ahead, behind = _nights(deployment, client)
    return Planned(
        run=deployment.name,
        schedule=Schedule(cron, timezone, deployment.parameters),
        paused=deployment.paused,
        next=None if ahead is None else ahead.expected_start_time,
        last=None if behind is None or behind.state is None else behind.state.name,
    )


def _nights(deployment: "DeploymentResponse", client: "SyncPrefectClient") -> "tuple[FlowRun | None, FlowRun | None]":
    """The next night and the last one."""
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
