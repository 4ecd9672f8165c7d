"""Sockets that servers of this process listen on, and their URLs."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

from coevo.utilities.errors import CoevoError
from coevo.utilities.local_http import LOOPBACK

ANYWHERE = ("0.0.0.0", "::")
"""Addresses that stand for all of a machine."""


@contextmanager
def listening(host: str, port: int, backlog: int = 128) -> Iterator[socket.socket]:
    """A socket that listens within the block; connections wait in it until a server takes them.

    Args:
        host: address of this machine, or its name.
        port: port; 0 for a free one.
        backlog: most connections that wait.

    Raises:
        CoevoError: the port is taken, or the host is not of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=backlog)
    except socket.gaierror:
        raise CoevoError(f"{host}:{port}: this machine has no such address: choose another --host") from None
    except OSError as error:
        raise CoevoError(f"{host}:{port}: {os.strerror(error.errno or 0)}: choose another --port or --host") from None
    with closing(listener):
        yield listener


def url_of(host: str, port: int) -> str:
    """URL by which a client of this machine reaches a server."""
    name = LOOPBACK if host in ANYWHERE else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"
