"""Names that the server answers to, so that a foreign web page can reach it neither by another name nor by origin."""

import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOCAL = ("127.0.0.1", "localhost", "::1")
"""Names of the loopback interface."""
AUTHORITY = re.compile(r"(?P<name>\[[0-9a-f.]*:[0-9a-f:.]*\]|[^\s:@/?#\[\]\\%]+)(:(?P<port>[0-9]{1,5}))?")
"""A ``Host`` header in lower case: a name or an address, and maybe a port; no user, path or query."""
LINE = 300
"""Most characters of a message."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """Names allowed in a ``Host`` header.

    Attributes:
        names: names in lower case.
        addresses: whether any IP address is allowed; a page can only have its own server's address.
    """

    names: frozenset[str]
    addresses: bool

    def allow(self, host: str) -> bool:
        """Return True if a header names this server, with or without a port."""
        found = AUTHORITY.fullmatch(host.lower())
        if found is None or int(found["port"] or 0) > 65535:
            return False
        name = found["name"].removeprefix("[").removesuffix("]")
        return name in self.names or (self.addresses and _is_address(name))


class Guard:
    """Middleware that refuses a foreign ``Host``, and requests from pages of another origin.

    Args:
        app: application that handles all other requests.
        hosts: allowed names.
    """

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or pass on the start and the end of the server."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Request(scope).headers
        answer: ASGIApp
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._hosts.allow(hosts[0]):
            answer = answer_of(refusal(403, "this Host is not allowed: the server's --allow-host adds a name"))
        elif len(origins) > 1 or not all(_is_own(origin, hosts[0]) for origin in origins):
            answer = answer_of(refusal(403, "this Origin is not allowed: no page but the server's own may ask"))
        else:
            answer = self._app
        await answer(scope, receive, send)


def hosts_of(bound: str, more: Sequence[str]) -> Hosts:
    """Names of a server: loopback names; on other addresses also its host, the machine's name and any IP address.

    Args:
        bound: address that it listens on.
        more: additional names.
    """
    own = LOCAL if bound in LOCAL else (*LOCAL, bound, socket.gethostname())
    return Hosts(frozenset(name.lower() for name in (*own, *more)), bound not in LOCAL)


def bearer_of(request: Request) -> str:
    """Bearer token of a request; empty without one, and with two ``Authorization`` headers, which proxies may read
    differently.
    """
    given = request.headers.getlist("authorization")
    kind, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() if kind.lower() == "bearer" else ""


def refusal(status: int, message: str) -> HTTPException:
    """HTTP error with an answer of one line."""
    line = "".join(each if each.isprintable() else " " for each in message)
    return HTTPException(status, " ".join(line.split())[:LINE])


def answer_of(refused: HTTPException) -> JSONResponse:
    """JSON of a refusal."""
    document = {"error_code": HTTPStatus(refused.status_code).name, "message": refused.detail}
    return JSONResponse(document, refused.status_code, refused.headers)


def _is_own(origin: str, host: str) -> bool:
    scheme, _, address = origin.lower().partition("://")
    return scheme in ("http", "https") and address == host.lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
