"""Access of a browser to Prefect's pages, by a link that works once."""

import json
import urllib.request
from base64 import b64encode
from pathlib import Path

from coevo.flows.servers.daemon import recorded
from coevo.flows.servers.secret import home, secret_of
from coevo.flows.servers.server import ServerError
from coevo.flows.servers.servers import ensure_prefect
from coevo.flows.servers.visits import LINKS
from coevo.lineage.files import write_atomically


def prefect_pages(workspace: Path) -> str:
    """URL of Prefect's pages: a link that works once, or the address of a server that coevo did not start.

    Raises:
        ServerError: the server did not start, or has stopped.
    """
    api = ensure_prefect(workspace)
    pages = api.removesuffix("/api")
    if pages not in (server.url for server in recorded(workspace)):
        return pages
    secret = secret_of(workspace)
    try:
        return pages + _new_link(pages, secret)
    except OSError as error:
        raise ServerError(
            f"the Prefect server at {pages} gives no link ({error}): see its log, then try again"
        ) from None


def _new_link(pages: str, secret: str) -> str:
    authorization = "Basic " + b64encode(secret.encode()).decode()
    request = urllib.request.Request(pages + LINKS, method="POST", headers={"Authorization": authorization})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(json.load(answer)["link"])


def page_to(link: str, workspace: Path) -> str:
    """Write a page that redirects to a link; return its URL. Command lines of browsers are public, this file is not."""
    page = home(workspace) / "open.html"
    text = f'<!doctype html><meta http-equiv="refresh" content="0; url={link}">\n'
    write_atomically(page, text, private=True)
    return page.as_uri()
