"""The sample's pages, from an empty folder, and beside it the run ``first`` of ``small_run``."""

import json
import re
import urllib.request
from base64 import b64encode
from contextlib import contextmanager
from dataclasses import dataclass

from support import small_run
from support.browser import urls
from support.runs import coevo

from coevo.flows.sample import RUN
from coevo.flows.servers.server_secret import secret_of
from coevo.flows.servers.servers import mlflow_pages
from coevo.flows.upkeep.publishing import complete
from coevo.lineage.workspace import Workspace
from coevo.tasks.publish.mlflow.tracking_store import client, tracking_store


@dataclass(frozen=True)
class Shown:
    """A workspace whose pages are up, and MLflow's ids of its runs."""

    workspace: Workspace
    prefect: str
    experiment: str
    runs: dict[str, str]

    def enter(self, page):
        """Open the link that ``coevo ui`` makes, as a person does who looks at Prefect's pages; returns it."""
        link = re.search(r"http\S+/coevo/open/\S+", coevo("ui", workspace=self.workspace.root).stdout)[0]
        page.goto(link)
        page.wait_for_url(f"{self.prefect}/dashboard")
        return link

    def enter_mlflow(self, page):
        """Open the link to MLflow's pages; returns the address below which this browser sees them."""
        page.goto(mlflow_pages(self.workspace.root))
        page.wait_for_url(re.compile(r"127\.0\.0\.1:\d+/[^/]+/#/"))
        return page.url.partition("/#/")[0]

    def of_run(self, part=""):
        """MLflow's page of the sample, below that address."""
        return f"/#/experiments/{self.experiment}/runs/{self.runs[RUN]}{part}"

    def of_trace(self, trace):
        """MLflow's page of an episode, below that address."""
        return f"/#/experiments/{self.experiment}/traces?selectedEvaluationId={trace}"

    def of_revision(self, number):
        """Prefect's page of a revision of the sample."""
        made = self.ask("artifacts/filter", artifacts={"key": {"any_": [f"{RUN}-revision"]}})
        title = f"# {RUN}@{number}\n"
        (found,) = (one["id"] for one in made if one["data"].replace("\\", "").startswith(title))
        return f"{self.prefect}/artifacts/artifact/{found}"

    def ask(self, path, **body):
        """Prefect's answer, for what a page does not tell."""
        secret = b64encode(secret_of(self.workspace.root).encode()).decode()
        headers = {"Content-Type": "application/json", "Authorization": f"Basic {secret}"}
        request = urllib.request.Request(f"{self.prefect}/api/{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


@contextmanager
def showing(root):
    """The pages, until the block ends."""
    done = coevo("ui", "--sample", workspace=root)
    assert done.returncode == 0, done.stderr
    workspace = Workspace(root / "sample")
    try:
        complete(workspace, small_run.build(workspace.root, overrides=["seed=4"]))
        mlflow = client(tracking_store(workspace.root))
        (experiment,) = (one for one in mlflow.search_experiments() if one.name == "homerules")
        found = mlflow.search_runs([experiment.experiment_id])
        runs = {run.data.tags["coevo.run"]: run.info.run_id for run in found}
        yield Shown(workspace, urls(done.stdout)[0], experiment.experiment_id, runs)
    finally:
        coevo("down", workspace=workspace.root)
