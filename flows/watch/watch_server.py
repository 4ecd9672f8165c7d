"""The server of the live page behind the guard: ``python -m coevo.flows.watch.watch_server PORT``.

The workspace and the secret are in the environment, so that no list of processes shows the secret. It listens on
127.0.0.1 alone. A browser gets in by a link that works once; a decision or a retirement also needs the token.
"""

import asyncio
import hmac
import os
import sys
from pathlib import Path
from threading import Thread

import uvicorn

from coevo.flows.servers.daemon import ensure
from coevo.flows.servers.guard import Rules, ServerGuard
from coevo.flows.servers.server_secret import health_of, secret_of
from coevo.flows.servers.servers import new_link
from coevo.flows.servers.visits import PathVisits
from coevo.flows.watch.index_build import FOLDER
from coevo.lineage.workspace import Workspace

SECRET, WORKSPACE = "COEVO_WATCH_SECRET", "COEVO_WATCH_WORKSPACE"
"""Variables with the secret and the workspace."""
RULES = Rules("no variable: the pages are for browsers", (), sockets=False, command="coevo watch RUN")
SHUTDOWN_S = 1
"""Seconds that open streams have at the end; they would last for ever."""
LOOK_INTERVAL_S = 1.0
"""Seconds between two looks whether the server should end."""
TOKEN_DIGITS = 16


def ensure_watch(workspace: Path) -> tuple[str, str]:
    """URL of the live page's server, started if it is not running, and its secret.

    Raises:
        ServerError: the server did not start.
    """
    secret = secret_of(workspace, FOLDER)
    settings = {SECRET: secret, WORKSPACE: str(workspace.resolve())}
    server = ensure(workspace, FOLDER, ["coevo.flows.watch.watch_server"], health_of(secret), settings)
    return server.url, secret


def live_pages(workspace: Path) -> str:
    """Link to the list of runs, whose server is started if it is not running.

    Raises:
        ServerError: the server did not start.
    """
    url, secret = ensure_watch(workspace)
    return new_link(url, secret, "page")


def token_of(secret: str) -> str:
    """Token for decisions and retirements."""
    return hmac.digest(secret.encode(), b"decisions and retirements", "sha256").hex()[:TOKEN_DIGITS]


def main(port: int) -> None:
    """Serve on 127.0.0.1 until stopped."""
    secret, workspace = os.environ.pop(SECRET, ""), os.environ.pop(WORKSPACE, "")
    if not (secret and workspace):
        sys.exit(f"{SECRET} or {WORKSPACE} is not set: start this server with `coevo watch`")
    # Imported here, so that the command only loads what it needs to start the server.
    from coevo.flows.watch.watch_app import WatchSite, watch_app

    site = WatchSite(Workspace(Path(workspace)), token_of(secret))
    site.load()
    Thread(target=site.warm, name="warm", daemon=True).start()
    guard = ServerGuard(watch_app(site), port, secret, RULES, PathVisits(port))
    settings = uvicorn.Config(
        guard,
        host="127.0.0.1",
        port=port,
        log_level="warning",
        access_log=False,
        ws="none",
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
    _QuietServer(settings).run()


class _QuietServer(uvicorn.Server):
    """A server that looks once a second and not ten times whether it should end: a look costs 0.2 ms."""

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            await asyncio.sleep(LOOK_INTERVAL_S)


if __name__ == "__main__":
    main(int(sys.argv[1]))
