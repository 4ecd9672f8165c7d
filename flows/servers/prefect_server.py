"""Prefect's server behind its guard: ``python -m coevo.flows.servers.prefect_server PORT``.

The secret is in ``PREFECT_SERVER_API_AUTH_STRING``, so that no list of processes shows it.
"""

import sys

import uvicorn
from prefect.server.api.server import create_app
from prefect.settings import get_current_settings

from coevo.flows.servers.guard import ServerGuard


def main(port: int) -> None:
    """Serve on 127.0.0.1 until stopped."""
    settings = get_current_settings().server
    secret = settings.api.auth_string
    if secret is None:
        sys.exit("PREFECT_SERVER_API_AUTH_STRING is not set: start this server with `coevo ui`")
    sys.stderr.write(f"Prefect is at http://127.0.0.1:{port}; `coevo ui` makes a link to its pages.\n")
    uvicorn.run(
        ServerGuard(create_app(final=True), port, secret.get_secret_value()),
        host="127.0.0.1",
        port=port,
        timeout_keep_alive=settings.api.keepalive_timeout,
        ws_ping_interval=settings.api.websocket_ping_interval,
        ws_ping_timeout=settings.api.websocket_ping_timeout,
        log_level=settings.logging_level.lower(),
        access_log=False,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
