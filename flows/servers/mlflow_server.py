"""MLflow's server behind the guard: ``python -m coevo.flows.servers.mlflow_server PORT``.

Its database, its folder of artifacts and the secret are in the environment, so that no list of processes shows the
secret. A folder of this machine is refused as the place of an experiment's artifacts: whoever chooses one reads and
writes there as the owner of the server.
"""

import json
import os
import sys
from typing import Any
from urllib.parse import urlsplit

import uvicorn

from coevo.flows.servers.guard import Rules, ServerGuard
from coevo.flows.servers.visits import PathVisits

SECRET = "COEVO_MLFLOW_SECRET"
"""Variable with the secret."""
RULES = Rules("MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD", (), sockets=False, frames="SAMEORIGIN")
LOCAL = "Refused: an experiment keeps its artifacts in the workspace; leave artifact_location out.\n"


def main(port: int) -> None:
    """Serve on 127.0.0.1 until stopped."""
    secret = os.environ.pop(SECRET, "")
    if not secret:
        sys.exit(f"{SECRET} is not set: start this server with `coevo ui`")
    # MLflow reads its settings when it is imported.
    from mlflow.server import app as pages
    from mlflow.server.fastapi_app import app

    pages.before_request(_refuse_folders)
    sys.stderr.write(f"MLflow is at http://127.0.0.1:{port}; `coevo ui` makes a link to its pages.\n")
    guard = ServerGuard(app, port, secret, RULES, PathVisits(port))
    uvicorn.run(guard, host="127.0.0.1", port=port, log_level="warning", access_log=False, ws="none")


def _refuse_folders() -> Any:
    """Refuse an experiment that names the place of its artifacts in a folder, before MLflow sees it."""
    from flask import request

    if not request.path.endswith("/mlflow/experiments/create"):
        return None
    if any(is_folder(str(location)) for location in _places(request.get_json(force=True, silent=True))):
        return LOCAL, 403, {"Content-Type": "text/plain; charset=utf-8"}
    return None


def _places(asked: Any) -> list[Any]:
    """Places that a request names, in both spellings that MLflow reads; it may have encoded its JSON twice."""
    if isinstance(asked, str):
        try:
            asked = json.loads(asked)
        except ValueError:
            return []
    names = ("artifact_location", "artifactLocation")
    return [asked[name] for name in names if asked.get(name)] if isinstance(asked, dict) else []


def is_folder(location: str) -> bool:
    """Return True if a URI leads to a folder of this machine, or of no machine that it names."""
    scheme = urlsplit(location.strip()).scheme.lower()
    return scheme in ("", "file") or len(scheme) == 1


if __name__ == "__main__":
    main(int(sys.argv[1]))
