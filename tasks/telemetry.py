"""Telemetry and chatter of the libraries we build on, off before any is imported, here and in child processes.

So is importing from the working directory, for the child processes that libraries start: a folder named like a library
that happens to lie there would be imported in its place.

Set while the process has one thread: C code that reads the environment while another thread adds to it may crash.
"""

import os

OFF = {
    "DO_NOT_TRACK": "1",
    "GX_ANALYTICS_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PYTHONSAFEPATH": "1",
}
"""Environment variables that switch telemetry off."""
SHORT_TIMEOUTS = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}
"""Variables that make MLflow give up on a server soon, unless the user has set them."""


def switch_off() -> None:
    """Set them in this process, where they are not set already; children inherit them."""
    for name, value in OFF.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    for name, value in SHORT_TIMEOUTS.items():
        os.environ.setdefault(name, value)
