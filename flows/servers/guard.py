"""The guard in front of Prefect's and MLflow's servers, which checks the origin and the secret of requests.

Prefect can require a secret, MLflow has none. Prefect ignores the Host header, which a page of another site can choose
by changing the address of its name, and both accept requests from pages of other sites or ports. Therefore the guard
refuses requests with another host or from a page of another origin, and requests without the secret, except for the
health check.
"""

import hmac
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from coevo.flows.servers.server_secret import authorization_of, health_of
from coevo.flows.servers.visits import LINK, LINKS, Visits

FOREIGN = "Refused: this server answers requests of this machine to its own address, and pages of its own.\n"
UNKNOWN = "Refused: open these pages with a new link of `{command}`; programs set {variables}.\n"


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of a guard that depend on the server behind it.

    Attributes:
        variables: environment variables in which programs give its clients the secret.
        open_paths: paths that anyone may read.
        sockets: whether the server checks the secret of web sockets itself; otherwise none is opened.
        frames: ``X-Frame-Options`` of its answers.
        command: the command that prints links to its pages.
    """

    variables: str = "PREFECT_API_AUTH_STRING"
    open_paths: tuple[str, ...] = ("/api/health",)
    sockets: bool = True
    frames: str = "DENY"
    command: str = "coevo ui"


class ServerGuard:
    """An ASGI application in front of a server's.

    Args:
        app: the server's application.
        port: its port on 127.0.0.1.
        secret: secret of its clients.
        rules: rules for this server; by default Prefect's.
        visits: browsers with access; by default to Prefect's pages.
    """

    def __init__(
        self, app: ASGIApp, port: int, secret: str, rules: Rules | None = None, visits: Visits | None = None
    ) -> None:
        self._app = app
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self._authorization = authorization_of(secret)
        self._health = health_of(secret)
        self._rules = rules or Rules()
        self._visits = visits or Visits(port)
        self._unknown = UNKNOWN.format(variables=self._rules.variables, command=self._rules.command)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse one request, answer it, or pass it to the server."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            # Prefect checks the secret in the first message.
            passes = self._rules.sockets and self._is_from_here(scope)
            answer: ASGIApp = self._app if passes else WebSocketClose(code=1008, reason="foreign")
            await answer(scope, receive, send)
        elif not self._is_from_here(scope):
            await PlainTextResponse(FOREIGN, 403)(scope, receive, send)
        else:
            await self._answer(Request(scope))(scope, receive, _unframed(send, self._rules.frames))

    def _is_from_here(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        return len(hosts) == 1 and hosts[0] in self._hosts and all(it == f"http://{hosts[0]}" for it in origins)

    def _answer(self, request: Request) -> ASGIApp:
        path = request.scope["path"]
        if request.method == "GET" and path in self._rules.open_paths:
            return self._app
        if request.method == "GET" and path == self._health:
            return JSONResponse(True)
        if request.method == "GET" and path.startswith(LINK):
            return self._enter(path.removeprefix(LINK).removesuffix("/"))
        if request.method == "POST" and path == LINKS and self._has_secret(request):
            return JSONResponse({"link": LINK + self._visits.link()})
        if not (self._has_secret(request) or self._visits.admit(request)):
            return PlainTextResponse(self._unknown, 401)
        MutableHeaders(scope=request.scope)["authorization"] = self._authorization
        return self._app

    def _enter(self, token: str) -> Response:
        entered = self._visits.enter(token)
        if entered is None:
            return PlainTextResponse(self._unknown, 401)
        page, cookie = entered
        kept_out = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
        return HTMLResponse(page, headers={"Set-Cookie": cookie, **kept_out})

    def _has_secret(self, request: Request) -> bool:
        given = request.headers.get("authorization", "")
        return hmac.compare_digest(given.encode(), self._authorization.encode())


def _unframed(send: Send, frames: str) -> Send:
    """Forbid other pages to frame the answers, which would let them trick visitors into clicks."""

    async def to_nobody_else(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-Frame-Options"] = frames
            headers.setdefault("Referrer-Policy", "same-origin")
        await send(message)

    return to_nobody_else
