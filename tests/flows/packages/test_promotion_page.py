"""The page of a promotion that waits, on a real Prefect server, which this process had not been told of."""

import os

import pytest
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings
from support.packages import packaged

from coevo.flows.packages.promotion import PromotionTerms, promote
from coevo.flows.servers.servers import CLIENT
from coevo.lineage.workspace import Workspace
from coevo.tasks.package.champion import ASKS, champion
from coevo.tasks.package.model_registry import register
from coevo.tasks.publish.mlflow.tracker import Placement
from coevo.tasks.publish.mlflow.tracking_store import client, tracking_store
from coevo.tasks.publish.prefect import key_of

pytestmark = pytest.mark.full


@pytest.fixture
def workspace(prefect_workspace, tmp_path, monkeypatch):
    """A workspace whose Prefect server nobody has named; MLflow's store is elsewhere."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    for name in ("PREFECT_API_URL", "PREFECT_HOME", *CLIENT):
        monkeypatch.setenv(name, "")  # noted, so that the end of the test brings back what was there
        del os.environ[name]
    return Workspace(prefect_workspace)


def page_of(version, url):
    with temporary_settings({PREFECT_API_URL: url}), get_client(sync_client=True) as client:
        found = client.read_artifacts()
    return [each.data for each in found if each.key == key_of(version.name, "approval")]


def test_a_first_champion_that_waits_has_its_page(workspace, tmp_path, prefect_url):
    store = tracking_store(workspace.root)
    placement = Placement(client(store).create_experiment("first", artifact_location=store.artifacts), None)
    version = register(store, "first-of-all", packaged(tmp_path), placement, {ASKS: "person"})
    assert promote(version.name, PromotionTerms(), workspace).waits
    assert champion(store, version.model) is None
    (page,) = page_of(version, prefect_url)
    assert page.startswith("# first\\-of\\-all/1 waits for approval")
    assert "there is no champion yet" in page
    assert "seen\\-houses 0.500" in page
