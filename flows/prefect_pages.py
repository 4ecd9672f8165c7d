"""The way of a browser to Prefect's pages: a link that works once."""

import json
import urllib.request
from base64 import b64encode
from pathlib import Path

from flows.daemon import recorded
from flows.secret import home, secret_of, write_private
from flows.server import ServerError
from flows.servers import ensure_prefect
from flows.visits import LINKS


def prefect_pages(workspace: Path) -> str:
    """Where a browser finds Prefect's pages: a link that works once, or the address of a server that is not ours.

    Raises:
        ServerError: the server did not start, or has gone again.
    """
    api = ensure_prefect(workspace)
    pages = api.removesuffix("/api")
    if pages not in (server.url for server in recorded(workspace)):
        return pages
    authorization = "Basic " + b64encode(secret_of(workspace).encode()).decode()
    request = urllib.request.Request(pages + LINKS, method="POST", headers={"Authorization": authorization})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return pages + str(json.load(answer)["link"])
    except OSError as error:
        raise ServerError(
            f"the Prefect server at {pages} gives no link ({error}): see its log, then try again"
        ) from None


def page_to(link: str, workspace: Path) -> str:
    """A file that leads to a link, for a browser to open: what stands on its command line, everybody can read."""
    page = home(workspace) / "open.html"
    write_private(page, f'<!doctype html><meta http-equiv="refresh" content="0; url={link}">\n')
    return page.as_uri()
