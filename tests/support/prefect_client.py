"""A client of a Prefect server that wants a secret."""

import os

from prefect.client.orchestration import SyncPrefectClient

from coevo.flows.servers.server_secret import VARIABLE


def client_of(url, auth_string=None):
    """One with this secret, else with that of the session's server."""
    return SyncPrefectClient(url, auth_string=auth_string or os.environ[VARIABLE])


def secret():
    """That of the session's server, as user and password."""
    user, password = os.environ[VARIABLE].split(":")
    return user, password
