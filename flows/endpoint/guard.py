"""The names that the server answers to: a web page reaches it under none of its own, nor from its own origin."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOCAL = ("127.0.0.1", "localhost", "::1")
"""Names of the loopback interface."""
LINE = 300
"""Most characters of a message."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """Names that a ``Host`` header may have.

    Attributes:
        names: in lower case.
        addresses: whether any IP address will do; no page can have one that is not its server's.
    """

    names: frozenset[str]
    addresses: bool

    def allow(self, host: str) -> bool:
        """Return True if a header names this server, with or without a port."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self.names or (self.addresses and _is_address(name))


class Guard:
    """Refuses a foreign ``Host``, and requests that a page of another origin sends.

    Args:
        app: asked for everything else.
        hosts: that are allowed.
    """

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        headers = Request(scope).headers
        answer: ASGIApp
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._hosts.allow(host):
            answer = answer_of(refusal(403, "this Host is not allowed: the server's --allow-host adds a name"))
        elif origin is not None and origin.partition("://")[2].lower() != host.lower():
            answer = answer_of(refusal(403, "this Origin is not allowed: no page but the server's own may ask"))
        else:
            answer = self._app
        await answer(scope, receive, send)


def hosts_of(bound: str, more: Sequence[str]) -> Hosts:
    """The names of a server: those of loopback, and elsewhere its host, the machine and any IP address too.

    Args:
        bound: address that it listens on.
        more: names that are allowed besides.
    """
    own = LOCAL if bound in LOCAL else (*LOCAL, bound, socket.gethostname())
    return Hosts(frozenset(name.lower() for name in (*own, *more)), bound not in LOCAL)


def refusal(status: int, message: str) -> HTTPException:
    """An error with an answer of one line."""
    line = "".join(each if each.isprintable() else " " for each in message)
    return HTTPException(status, " ".join(line.split())[:LINE])


def answer_of(refused: HTTPException) -> JSONResponse:
    """The JSON of a refusal."""
    document = {"error_code": HTTPStatus(refused.status_code).name, "message": refused.detail}
    return JSONResponse(document, refused.status_code, refused.headers)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
