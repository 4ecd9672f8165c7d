"""HTTP on this machine: a free port, whether a server answers there, and an opener that follows no redirection."""

import socket
import time
import urllib.request
from http.client import HTTPException, HTTPResponse
from io import BytesIO
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
ANSWER_TIMEOUT_S = 5.0
"""Seconds that a server has to answer a look."""
MAX_HEAD_BYTES = 1 << 18
"""Most bytes of the head of a response that are read."""
CHUNK = 65536
"""Most bytes of a read."""


class _SameAddress(urllib.request.HTTPRedirectHandler):
    """Follows no redirection, which would send a key to another address: the response is an error then."""

    def redirect_request(self, *_: object) -> None:
        """Follow nothing."""


def opener(direct: bool) -> urllib.request.OpenerDirector:
    """Opener that follows no redirection; ``direct`` passes the proxies of the environment by."""
    return urllib.request.build_opener(_SameAddress, *([urllib.request.ProxyHandler({})] if direct else []))


def answers(url: str) -> bool:
    """Return True if a GET of the URL is answered with status 200 within 5 seconds; not by what speaks no HTTP.

    The server is on this machine, whose ports a proxy does not reach. A redirection, which may lead anywhere, is no
    answer, and neither is one whose head is not complete in time.
    """
    try:
        response = HTTPResponse(_ResponseHead(_head_of(url)))  # type: ignore[arg-type]
        response.begin()
        return response.status == 200
    except (OSError, HTTPException):
        return False


class _ResponseHead:
    """Stands for a connection, from which the beginning of a response has been read."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def makefile(self, _: str) -> BytesIO:
        """The content as a file."""
        return BytesIO(self._content)


def _head_of(url: str) -> bytes:
    """Answer of a server to a GET, up to the first empty line. Raises ``OSError``: it did not come in time."""
    give_up, heard, there = time.monotonic() + ANSWER_TIMEOUT_S, b"", urlsplit(url)
    request = f"GET {there.path or '/'} HTTP/1.1\r\nHost: {there.netloc}\r\nConnection: close\r\n\r\n"
    with socket.create_connection((there.hostname or LOOPBACK, there.port or 80), ANSWER_TIMEOUT_S) as connection:
        connection.sendall(request.encode())
        while b"\r\n\r\n" not in heard and len(heard) < MAX_HEAD_BYTES:
            connection.settimeout(max(0.001, give_up - time.monotonic()))
            part = connection.recv(CHUNK)
            if not part:
                break
            heard += part
    return heard


def free_port(port: int = 0, host: str = LOOPBACK) -> int:
    """The port, or any free one for 0.

    Raises:
        OSError: the port is taken, or the host is not of this machine.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return int(probe.getsockname()[1])
