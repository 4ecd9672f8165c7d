"""Address of MLflow's pages, which opens an experiment with its view of recipe, seed and commit."""

import json
import urllib.request
from pathlib import Path
from typing import Any

from coevo.flows.servers.daemon import recorded
from coevo.flows.servers.servers import ensure_mlflow_ui
from coevo.tasks.publish.mlflow.experiment import TAG, page_of

SEARCH = "/api/2.0/mlflow/experiments/search"
NEWEST = {"filter": f"tags.`{TAG}` LIKE '%'", "order_by": ["creation_time DESC"], "max_results": 1}


def mlflow_pages(workspace: Path) -> str:
    """URL of the newest experiment with the view; of MLflow's first page without one, or if coevo did not start MLflow.

    Raises:
        ServerError: the server did not start.
    """
    url = ensure_mlflow_ui(workspace)
    if url not in (server.url for server in recorded(workspace)):
        return url
    try:
        found = _newest(url)
    except OSError:  # the first page shows what is wrong
        return url
    return url + page_of(found[0]["experiment_id"]) if found else url


def _newest(url: str) -> list[dict[str, Any]]:
    """The newest experiment with the view, if there is one."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url + SEARCH, json.dumps(NEWEST).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return list(json.load(answer).get("experiments", []))
