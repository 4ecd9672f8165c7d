"""A client of a Prefect server that wants a secret."""

import os

from prefect.client.orchestration import SyncPrefectClient

from flows.secret import VARIABLE


def client_of(url, secret=None):
    """One with this secret, else with that of the session's server."""
    return SyncPrefectClient(url, auth_string=secret or os.environ[VARIABLE])
