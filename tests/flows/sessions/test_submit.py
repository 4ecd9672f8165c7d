"""Runs of a study are spread over the workers of a pool, each once."""

import pytest
from prefect import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterDeploymentId
from prefect.settings import PREFECT_API_URL, temporary_settings
from support.scheduled import create

from coevo.flows.run_activity import pool_of
from coevo.flows.servers.servers import CLIENT
from coevo.flows.sessions import schedules
from coevo.flows.sessions.scheduled_session import settled
from coevo.lineage.workspace import Workspace


@pytest.mark.full
def test_a_run_that_waits_or_plays_is_not_submitted_again(prefect_workspace, prefect_url, monkeypatch):
    for name, value in {**CLIENT, "PREFECT_API_URL": prefect_url}.items():
        monkeypatch.setenv(name, value)
    workspace = Workspace(prefect_workspace)
    names = ("arm-a", "arm-b", "arm-c")
    for name in names:
        create(prefect_workspace, name, iterations=2)
    with temporary_settings({PREFECT_API_URL: prefect_url}), get_client(sync_client=True) as client:
        try:
            assert schedules.submit(workspace, {"arm-a": 2, "arm-b": 2}, "study") == ["arm-a", "arm-b"]
            assert schedules.submit(workspace, dict.fromkeys(names, 2), "study") == ["arm-c"]
            (listed,) = [row for row in schedules.planned(workspace) if row.run == "arm-a"]
            assert (listed.schedule.cron, listed.schedule.pool, listed.next is None) == ("", "study", False)
            deployment = client.read_deployment_by_name("session/arm-a").id
            one = FlowRunFilter(deployment_id=FlowRunFilterDeploymentId(any_=[deployment]))
            (waiting,) = client.read_flow_runs(flow_run_filter=one)
            assert waiting.work_pool_name == "study"
            assert "coevo-shared-pool" in waiting.tags
            assert pool_of("arm-a", workspace) == {"name": "study", "workers": [], "sessions": []}
            assert pool_of("nobody", workspace) is None
            monkeypatch.setenv("PREFECT__FLOW_RUN_ID", str(waiting.id))
            begun = [settled(*each) for each in ((2, 1, 1), (3, 2, 2), (3, 0, 0))]
            assert begun == [(2, 1, 1), (2, 1, 1), (2, 0, 0)]  # as it was when the session first began
        finally:
            for name in names:
                schedules.remove(workspace, name)
