"""Activity of a run: its stage and what it waits for, its processes, its engines, and the workers of its pool."""

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import psutil

from coevo.flows.engine_load import busiest, engine_load, summary_of
from coevo.flows.history.run_summaries import RunSummary, run_row
from coevo.lineage.workspace import Workspace

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

ROLES = (
    ("vllm.entrypoints", "vLLM server"),
    ("coevo_sender", "weight sender"),
    ("models.trainer.child", "trainer"),
    ("ray::", "Ray actor"),
    ("prefect", "Prefect"),
)
"""Part of a command line, and what such a process does."""


def activity(found: RunSummary, workspace: Workspace) -> dict[str, Any]:
    """State of a run with all that works for it on this machine, as ``coevo status --json`` prints it."""
    processes = list(_processes(found.process))
    engines = list(engine_load(found.paths.engine))
    return {
        **run_row(found),
        "iterations": None if found.config is None else found.config.iterations,
        "waits_for": _waits_for(found, engines),
        "processes": processes,
        "engines": engines,
        "engine_load": summary_of(engines),
        "pool": pool_of(found.paths.name, workspace),
    }


def _waits_for(found: RunSummary, engines: Sequence[Mapping[str, Any]]) -> str | None:
    if found.status.status == "waiting":
        return "a person's decision"
    if found.process is None:
        return None
    behind = busiest(engines)
    return None if behind is None or not behind["waiting"] else f"{behind['name']}: {behind['waiting']} requests wait"


def _processes(holder: str | None) -> Iterator[dict[str, Any]]:
    """The process that writes to a run, and all that it has started here."""
    if holder is None or not holder.split()[0].isdecimal():
        return
    try:
        driver = psutil.Process(int(holder.split()[0]))
        family = [driver, *driver.children(recursive=True)]
    except psutil.Error:
        return
    for each in family:
        try:
            with each.oneshot():
                line, environment = " ".join(each.cmdline()), each.environ()
                yield {
                    "node": socket.gethostname(),
                    "pid": each.pid,
                    "role": "driver" if each is driver else _role(line),
                    "rank": environment.get("RANK"),
                    "cpu_s": round(sum(each.cpu_times()[:2]), 1),
                    "memory_bytes": each.memory_info().rss,
                }
        except psutil.Error:  # it has ended meanwhile
            continue


def _role(line: str) -> str:
    return next((role for part, role in ROLES if part in line), "environment or helper")


def pool_of(run: str, workspace: Workspace) -> dict[str, Any] | None:
    """Pool, workers and sessions of a scheduled run; None without a schedule, or if no server runs."""
    from coevo.flows.servers.daemon import recorded

    here = any(server.name == "prefect" and server.runs() for server in recorded(workspace.root))
    if not (here or os.environ.get("PREFECT_API_URL")):
        return None
    from coevo.flows.servers.servers import prefect_in_use, use_prefect

    use_prefect(workspace.root)
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    with prefect_in_use(), get_client(sync_client=True) as client:
        try:
            pool = client.read_deployment_by_name(f"session/{run}").work_pool_name
        except ObjectNotFound:
            return None
        return (
            None if pool is None else {"name": pool, "workers": _workers(client, pool), "sessions": _busy(client, pool)}
        )


def _workers(client: "SyncPrefectClient", pool: str) -> list[dict[str, Any]]:
    answer = client.request(
        "POST", "/work_pools/{work_pool_name}/workers/filter", path_params={"work_pool_name": pool}, json={}
    )
    return [
        {"name": each["name"], "status": each["status"], "seen": each["last_heartbeat_time"]} for each in answer.json()
    ]


def _busy(client: "SyncPrefectClient", pool: str) -> list[dict[str, Any]]:
    """Sessions of a pool that run or were taken, with the worker of each."""
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterState,
        FlowRunFilterStateType,
        WorkPoolFilter,
        WorkPoolFilterName,
    )
    from prefect.client.schemas.objects import StateType

    taken = FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING, StateType.PENDING]))
    found = client.read_flow_runs(
        flow_run_filter=FlowRunFilter(state=taken),
        work_pool_filter=WorkPoolFilter(name=WorkPoolFilterName(any_=[pool])),
    )
    return [
        {"run": each.parameters.get("run"), "worker": each.labels.get("prefect.worker.name"), "state": each.state_name}
        for each in found
    ]
