"""Telemetry and chatter of the libraries we build on, off before any is imported, here and in child processes."""

import os

OFF = {
    "DO_NOT_TRACK": "1",
    "GX_ANALYTICS_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
}
"""Environment variables that say no."""


def switch_off() -> None:
    """Set them in this process; children inherit them."""
    os.environ.update(OFF)
