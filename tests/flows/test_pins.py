"""Silent breakage without the pins of ``pyproject.toml``, and contents of the package."""

import re
import time
from importlib.metadata import distributions
from pathlib import Path

import httpx
import pytest
from packaging.specifiers import SpecifierSet
from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.schedules import CronSchedule
from support.prefect_client import client_of, secret

from coevo.flows.servers.daemon import down
from coevo.flows.servers.server_secret import secret_of
from coevo.flows.servers.servers import ensure_prefect

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11.7", "3.12.1", "3.13.0", "3.14.0")


def scheduled_runs(url, auth_string=None, seconds=90):
    """Runs that the server creates for a new deployment with a cron, waited for."""
    # Prefect's own client: it asks again where the server says that its database is busy.
    with client_of(url, auth_string) as client:
        schedule = DeploymentScheduleCreate(schedule=CronSchedule(cron="* * * * *"), active=True)
        flow = client.create_flow_from_name("pinned")
        deployment = client.create_deployment(flow, f"cron-{time.time_ns()}", schedules=[schedule])
        mine = DeploymentFilter(id=DeploymentFilterId(any_=[deployment]))
        give_up = time.monotonic() + seconds
        runs = []
        while not runs and time.monotonic() < give_up:
            time.sleep(1)
            runs = client.read_flow_runs(deployment_filter=mine)
        client.delete_deployment(deployment)
    return runs


def answer_without_limit(url, auth=None):
    return httpx.post(f"{url}/flow_runs/filter", json={"limit": None}, timeout=30, auth=auth or secret())


@pytest.mark.parametrize("python", PYTHONS)
def test_each_package_supports_each_version_of_python(python):
    bounds = {dist.metadata["Name"]: dist.metadata.get("Requires-Python", "") for dist in distributions()}
    assert {name: bound for name, bound in bounds.items() if python not in SpecifierSet(bound)} == {}


def test_make_and_the_lock_name_the_versions_of_the_package():
    admitted = SpecifierSet(next(dist.metadata["Requires-Python"] for dist in distributions(name="coevo")))
    made = (ROOT / "Makefile").read_text()
    resolved = re.search(r"for version in ([\d. ]+);", made)[1].split()
    assert [f"3.{minor}" for minor in range(30) if f"3.{minor}.0" in admitted] == resolved
    assert [python.rpartition(".")[0] for python in PYTHONS] == resolved
    assert f"(3, {resolved[0][2:]}) <= sys.version_info[:2] <= (3, {resolved[-1][2:]})" in made


@pytest.mark.full
def test_a_filter_without_limit_is_answered(prefect_url):
    assert answer_without_limit(prefect_url).status_code == 200


@pytest.mark.full
def test_a_deployment_with_a_cron_acquires_runs(prefect_url):
    assert {run.state_type for run in scheduled_runs(prefect_url)} == {StateType.SCHEDULED}


@pytest.mark.full
def test_the_server_logs_no_error(tmp_path, monkeypatch):
    """On a server of its own: tests of the shared one kill its clients."""
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    try:
        url, auth_string = ensure_prefect(tmp_path), secret_of(tmp_path)
        answer_without_limit(url, tuple(auth_string.split(":")))
        assert scheduled_runs(url, auth_string)
    finally:
        down(tmp_path)
    log = (tmp_path / "prefect.log").read_text()
    assert log
    wrong = [line for line in log.splitlines() if "ERROR" in line or "Traceback" in line]
    assert wrong == [], log[log.find(wrong[0]) :][:8000]


def test_the_folder_mlflow_is_no_package():
    assert not (ROOT / "mlflow" / "__init__.py").exists()
