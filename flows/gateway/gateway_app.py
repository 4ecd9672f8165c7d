"""The application of the gateway.

    POST /s/SESSION/v1/chat/completions   OpenAI's dialect; its clients' base address is /s/SESSION/v1
    POST /s/SESSION/v1/messages           Anthropic's dialect; its clients' base address is /s/SESSION
    GET  /s/SESSION/v1/models             the policy that answers
    POST /s/SESSION                       open a session with mode, group and task; its token and addresses
    POST /s/SESSION/outcome               end a session with an outcome, or with the actions of which the environment
                                          tells it; once this is answered, the session is on the disk
    GET  /status                          numbers of sessions

A request has the gateway's token, or the token of its session, which opens that session alone. The first request to a
session opens it.
"""

import asyncio
import hmac
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from coevo.flows.endpoint.chat_routes import DIALECTS, ServedChat, fail, refuse
from coevo.flows.endpoint.dialect import WirePart, body_as
from coevo.flows.endpoint.origin_guard import Guard, Hosts, bearer_of, refusal
from coevo.flows.endpoint.request_body import body_of
from coevo.tasks.gateway.chat_agent import ChatAgent
from coevo.tasks.gateway.environment_outcome import OutcomeEnvironment
from coevo.tasks.gateway.gateway_session import Sessions
from coevo.tasks.gateway.request_gate import RequestGate
from coevo.tasks.gateway.session_store import PlayedActions, SessionOutcome, SessionTask
from coevo.utilities.errors import CoevoError

EXPIRE_INTERVAL_S = 30.0
"""Seconds between two searches for abandoned sessions."""
LOGGER = logging.getLogger("uvicorn.error")


class SessionForm(WirePart):
    """Settings of a session."""

    mode: Literal["training", "evaluation"] | None = None
    group: str = Field(default="", max_length=200)
    task: SessionTask | None = None


class Tokens:
    """Tokens of a gateway; a session's is a function of its run and its name, and survives a restart.

    Args:
        secret: the gateway's own token, which the gateways of a workspace share.
        run: name of the run whose sessions these are.
    """

    def __init__(self, secret: str, run: str) -> None:
        self._secret, self._run = secret, run

    def of(self, session: str) -> str:
        """Token of one session."""
        return hmac.digest(self._secret.encode(), f"session/{self._run}/{session}".encode(), "sha256").hex()

    def check(self, request: Request, session: str | None = None) -> None:
        """Check that a request has the gateway's token, or that of its session.

        Raises:
            HTTPException: 401 if it has neither.
        """
        given = bearer_of(request) or request.headers.get("x-api-key", "")
        wanted = [self._secret, *([] if session is None else [self.of(session)])]
        right = [hmac.compare_digest(given.encode(), each.encode()) for each in wanted]
        if not any(right):
            raise refusal(401, "the token is wrong: send the gateway's, or this session's, as the API key")


@dataclass(frozen=True, slots=True)
class Gateway:
    """Parts of the application.

    Attributes:
        agent: answers.
        sessions: all sessions.
        tokens: who may ask.
        body: maximum bytes of a request.
        sampling: settings with which every answer is drawn.
        gate: where requests wait while nothing is served.
        environment: tells outcomes of agents that report what they did; None without one.
    """

    agent: ChatAgent
    sessions: Sessions
    tokens: Tokens
    body: int
    sampling: Mapping[str, Any]
    gate: RequestGate = field(default_factory=RequestGate)
    environment: OutcomeEnvironment | None = None

    @property
    def chat(self) -> ServedChat:
        """The policy and the bank of all sessions."""
        return ServedChat(self.agent, self.sessions.policy, self.sessions.bank, self.body, self.sampling)

    async def complete(self, request: Request) -> Response:
        """Answer a request in the dialect of its address."""
        name = self._session(request)
        call = await self.chat.read(request)
        with self.sessions.reaching(name):
            await self.gate.enter()
        try:
            exchange = await self.chat.prompted(self.sessions.use(name, call.chat.count, call.task), call)
        except BaseException:
            self.gate.leave()
            raise
        answered = asyncio.ensure_future(self.chat.reply(exchange))
        answered.add_done_callback(lambda _: self.gate.leave())
        return await self.chat.respond(request, exchange, answered)

    async def open(self, request: Request) -> Response:
        """Open a session, with the settings in the body."""
        name = request.path_params["session"]
        self.tokens.check(request)
        form = body_as(SessionForm, await body_of(request, self.body) or b"{}")
        session = self.sessions.open(name, form.mode, form.group, form.task)
        root = f"{request.url.scheme}://{request.headers['host']}/s/{name}"
        addresses = {"openai": f"{root}/v1", "anthropic": root, "outcome": f"{root}/outcome"}
        return JSONResponse({"session": name, "mode": session.mode, "token": self.tokens.of(name), **addresses})

    async def end(self, request: Request) -> Response:
        """Keep a session with its outcome."""
        name = self._session(request)
        body = await body_of(request, self.body)
        outcome = await self._told(name, body) if _has_actions(body) else body_as(SessionOutcome, body)
        kept = await asyncio.to_thread(self.sessions.end(name, outcome))
        told = outcome.model_dump(include={"reward", "success", "scores"}) if outcome.actions else {}
        return JSONResponse({"session": name, "end": kept.end, **told})

    async def _told(self, name: str, body: bytes) -> SessionOutcome:
        """Outcome of actions, which the environment finds; of a session that is over, the one it has."""
        actions = body_as(PlayedActions, body).actions
        if self.environment is None:
            raise CoevoError("actions: a registered version has no environment: report reward and success")
        with self.sessions.reaching(name):
            if (played := self.sessions.to_play(name)) is not None:
                return await asyncio.wrap_future(self.environment.outcome(played[0], actions, played[1]))
        kept = await asyncio.to_thread(self.sessions.kept_outcome, name)
        # Other actions are too late, which ``Sessions.end`` says and counts.
        repeated = kept is not None and kept.actions == actions
        return kept if kept is not None and repeated else SessionOutcome(reward=0.0, success=False, actions=actions)

    async def models(self, request: Request) -> Response:
        """List the policy that answers."""
        self._session(request)
        return self.chat.models()

    async def status(self, request: Request) -> Response:
        """Report numbers of sessions."""
        self.tokens.check(request)
        self.sessions.expire()
        named = {"policy": self.sessions.policy, "bank": self.sessions.bank, "mode": self.sessions.mode}
        return JSONResponse({**named, "sessions": self.sessions.counts()})

    def _session(self, request: Request) -> str:
        name: str = request.path_params["session"]
        self.tokens.check(request, name)
        return name


def gateway_application(gateway: Gateway, hosts: Hosts) -> Starlette:
    """Create the application.

    Args:
        gateway: its parts.
        hosts: names that the server answers to.
    """
    post = ["POST"]
    return Starlette(
        routes=[
            *(Route(f"/s/{{session}}{path}", gateway.complete, methods=post) for path in DIALECTS),
            Route("/s/{session}/v1/models", gateway.models),
            Route("/s/{session}/outcome", gateway.end, methods=post),
            Route("/s/{session}", gateway.open, methods=post),
            Route("/status", gateway.status),
            Route("/health", _alive),
        ],
        middleware=[Middleware(Guard, hosts=hosts)],
        exception_handlers={HTTPException: refuse, CoevoError: refuse, Exception: fail},
        lifespan=_expiring(gateway.sessions),
    )


def _expiring(sessions: Sessions) -> Callable[[Starlette], Any]:
    """Lifespan with a task that keeps abandoned sessions."""

    async def watch() -> None:
        while True:
            await asyncio.sleep(EXPIRE_INTERVAL_S)
            for error in sessions.expire():
                LOGGER.error("an abandoned session cannot be kept", exc_info=error)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        task = asyncio.ensure_future(watch())
        yield
        task.cancel()

    return lifespan


def _has_actions(body: bytes) -> bool:
    """Report whether a body leaves the outcome to the environment; one that cannot be read does not."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(parsed, dict) and "actions" in parsed


async def _alive(_: Request) -> Response:
    return JSONResponse({"status": "ok"})
