"""Access of a browser to Prefect's and MLflow's pages, by a link that works once."""

import json
import urllib.request
from pathlib import Path
from typing import Any

from coevo.flows.servers.daemon import recorded
from coevo.flows.servers.server_process import ServerError
from coevo.flows.servers.server_secret import authorization_of, home, secret_of
from coevo.flows.servers.servers import ensure_mlflow_ui, ensure_prefect
from coevo.flows.servers.visits import LINKS
from coevo.lineage.atomic_files import write_atomically
from coevo.tasks.publish.mlflow.experiment import TAG, page_of


def prefect_pages(workspace: Path) -> str:
    """URL of Prefect's pages: a link that works once, or the address of a server that coevo did not start.

    Raises:
        ServerError: the server did not start, or has stopped.
    """
    api = ensure_prefect(workspace)
    pages = api.removesuffix("/api")
    if pages not in (server.url for server in recorded(workspace)):
        return pages
    return new_link(pages, secret_of(workspace), "Prefect")


def new_link(pages: str, secret: str, name: str) -> str:
    """A link to the pages of a server. Raises ``ServerError`` if it gives none."""
    try:
        return pages + str(ask(pages + LINKS, secret)["link"])
    except OSError as error:
        raise ServerError(
            f"the {name} server at {pages} gives no link ({error}): see its log, then try again"
        ) from None


def ask(url: str, secret: str, **body: object) -> Any:
    """Post a request with the secret to a server of the workspace; return its JSON."""
    headers = {"Content-Type": "application/json", "Authorization": authorization_of(secret)}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def page_to(link: str, workspace: Path, server: str = "prefect") -> str:
    """Write a page that redirects to a link; return its URL. Command lines of browsers are public, this file is not."""
    page = home(workspace, server) / "open.html"
    text = f'<!doctype html><meta http-equiv="refresh" content="0; url={link}">\n'
    write_atomically(page, text, private=True)
    return page.as_uri()


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
