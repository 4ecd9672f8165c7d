"""Link to MLflow's pages, which opens an experiment with its view of recipe, seed and commit."""

from pathlib import Path
from typing import Any

from coevo.flows.servers.daemon import recorded
from coevo.flows.servers.prefect_pages import ask, new_link
from coevo.flows.servers.server_secret import secret_of
from coevo.flows.servers.servers import ensure_mlflow_ui
from coevo.tasks.publish.mlflow.experiment import TAG, page_of

SEARCH = "/api/2.0/mlflow/experiments/search"
NEWEST: dict[str, Any] = {"filter": f"tags.`{TAG}` LIKE '%'", "order_by": ["creation_time DESC"], "max_results": 1}


def mlflow_pages(workspace: Path) -> str:
    """A link that works once, to the newest experiment with the view, or to MLflow's first page without one.

    It is the address of the server if coevo did not start it.

    Raises:
        ServerError: the server did not start, or gives no link.
    """
    url = ensure_mlflow_ui(workspace)
    if url not in (server.url for server in recorded(workspace)):
        return url
    secret = secret_of(workspace, "mlflow")
    link = new_link(url, secret, "MLflow")
    try:
        found = ask(url + SEARCH, secret, **NEWEST).get("experiments", [])
    except OSError:  # the first page shows what is wrong
        return link
    return link + page_of(found[0]["experiment_id"]) if found else link
