"""``python -P -m coevo.flows.endpoint MODEL --host … --port …``: serve a model until the process ends."""

import argparse
from dataclasses import fields
from typing import Any

import uvicorn

from coevo.flows.endpoint.endpoint_app import application
from coevo.flows.endpoint.model import Model
from coevo.flows.endpoint.origin_guard import hosts_of
from coevo.flows.endpoint.request_limits import Limits

CONNECTIONS = 64
"""Most concurrent connections; further ones get 503."""


def main() -> None:
    """Load the model, then listen."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--host", required=True)
    parser.add_argument("--version", default="")
    parser.add_argument("--allow-host", action="append", default=[])
    for name in ("port", *(limit.name for limit in fields(Limits))):
        parser.add_argument(f"--{name}", type=int, required=True)
    given = parser.parse_args()
    limits = Limits(given.body, given.rows, given.text)
    app = application(Model(given.model, given.version, given.body), limits, hosts_of(given.host, given.allow_host))
    quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False, "lifespan": "off"}
    uvicorn.run(app, host=given.host, port=given.port, http="h11", ws="none", limit_concurrency=CONNECTIONS, **quiet)


if __name__ == "__main__":
    main()
