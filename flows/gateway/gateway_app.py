"""The application of the gateway.

    POST /s/SESSION/v1/chat/completions   OpenAI's dialect; its clients' base address is /s/SESSION/v1
    POST /s/SESSION/v1/messages           Anthropic's dialect; its clients' base address is /s/SESSION
    GET  /s/SESSION/v1/models             the policy that answers
    POST /s/SESSION                       open a session with mode, group and task; its token and addresses
    POST /s/SESSION/outcome               end a session; once this is answered, the session is on the disk
    GET  /status                          numbers of sessions

A request has the gateway's token, or the token of its session, which opens that session alone. The first request to a
session opens it.
"""

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from secrets import token_hex
from time import time
from typing import Any, Literal

from pydantic import Field
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from coevo.flows.endpoint.origin_guard import Guard, Hosts, bearer_of, refusal
from coevo.flows.endpoint.request_body import body_of
from coevo.flows.gateway.anthropic_dialect import Anthropic
from coevo.flows.gateway.dialect import ChatCall, ChatReply, Dialect, Stamp, WirePart, body_as
from coevo.flows.gateway.openai_dialect import OpenAI
from coevo.tasks.gateway.chat_agent import ChatAgent, ChatAnswer, Prompted, PromptTooLongError
from coevo.tasks.gateway.gateway_session import FullError, GatewaySession, OverError, Sessions
from coevo.tasks.gateway.request_gate import RequestGate
from coevo.tasks.gateway.session_store import SessionOutcome, SessionTask
from coevo.utilities.errors import CoevoError

DIALECTS: Mapping[str, Dialect] = {"/v1/chat/completions": OpenAI(), "/v1/messages": Anthropic()}
"""Dialects by the end of their address."""
KEEP_ALIVE_S = 10.0
"""Seconds after which a stream that waits sends a comment."""
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
    """

    agent: ChatAgent
    sessions: Sessions
    tokens: Tokens
    body: int
    sampling: Mapping[str, Any]
    gate: RequestGate = field(default_factory=RequestGate)

    async def complete(self, request: Request) -> Response:
        """Answer a request in the dialect of its address."""
        name, dialect = self._session(request), _dialect(request)
        call = dialect.parse(await body_of(request, self.body))
        await self.gate.enter()
        try:
            stamp, reply = await self._prompted(name, call)
        except BaseException:
            self.gate.leave()
            raise
        answered = asyncio.ensure_future(reply)
        answered.add_done_callback(lambda _: self.gate.leave())
        if call.stream:
            events = _events(dialect, call, answered)
            return StreamingResponse(events, headers=stamp.headers(), media_type="text/event-stream")
        try:
            found = await asyncio.shield(answered)
        except (OverError, FullError):
            raise
        except CoevoError as error:
            LOGGER.error("%s", error)
            raise _failed(error) from error
        return JSONResponse(dialect.document(call, found), headers=stamp.headers())

    async def _prompted(self, name: str, call: ChatCall) -> tuple[Stamp, Coroutine[Any, Any, ChatReply]]:
        """Write the prompt of a call; where its answer is from, and the answer, which is yet to be drawn."""
        self._check_model(call.model)
        session = self.sessions.use(name, call.chat.count)
        prompted = await self.agent.prompt(session, call.chat)
        stamp = Stamp(name, session.mode, self.sessions.policy, self.sessions.bank, prompted.entries)
        return stamp, self._reply(session, call, prompted, stamp)

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
        outcome = body_as(SessionOutcome, await body_of(request, self.body))
        kept = await asyncio.to_thread(self.sessions.end(name, outcome))
        return JSONResponse({"session": name, "end": kept.end})

    async def models(self, request: Request) -> Response:
        """List the policy that answers."""
        self._session(request)
        policy = {"id": self.sessions.policy, "object": "model", "created": 0, "owned_by": "coevo"}
        return JSONResponse({"object": "list", "data": [policy]})

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

    def _check_model(self, model: str) -> None:
        served = self.sessions.policy
        if "@" in model and model != served:
            raise refusal(404, f"model {model[:80]}: this gateway serves {served}, and no other revision")

    async def _reply(self, session: GatewaySession, call: ChatCall, prompted: Prompted, stamp: Stamp) -> ChatReply:
        answers = await self.agent.draw(session, call.chat, prompted)
        texts = self._texts(answers) if "logprobs" in call.wants else ()
        coevo = stamp.field(answers, self.sampling)
        return ChatReply(token_hex(12), int(time()), stamp.policy, prompted.prompt_ids, tuple(answers), coevo, texts)

    def _texts(self, answers: list[ChatAnswer]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(self.agent.texts(answer.turn.token_ids)) for answer in answers)


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
        exception_handlers={HTTPException: _refuse, CoevoError: _refuse, Exception: _fail},
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


async def _events(dialect: Dialect, call: ChatCall, answered: "asyncio.Future[ChatReply]") -> AsyncIterator[bytes]:
    """Events of a reply; comments while it is drawn, so that no client gives up."""
    while not answered.done():
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(answered), KEEP_ALIVE_S)
            break
        yield b": waiting\n\n"
    try:
        reply = answered.result()
    except Exception as error:
        LOGGER.error("an answer failed", exc_info=error)
        failure = _status(error) if isinstance(error, OverError | FullError) else _failed(error)
        body = JSONResponse(dialect.error(failure.status_code, failure.detail, None)).body
        yield b"event: error\ndata: " + bytes(body) + b"\n\n"
        return
    for event in dialect.events(call, reply):
        yield event


async def _alive(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _refuse(request: Request, error: Exception) -> Response:
    """Answer of one line in the request's dialect."""
    refused = error if isinstance(error, HTTPException) else _status(error)
    code = "context_length_exceeded" if isinstance(error, PromptTooLongError) else None
    body = _dialect(request).error(refused.status_code, refused.detail, code)
    return JSONResponse(body, refused.status_code, refused.headers)


async def _fail(request: Request, _: Exception) -> Response:
    """Answer of one line; the server's log gets the traceback."""
    return JSONResponse(_dialect(request).error(500, "the gateway failed: see its log", None), 500)


def _status(error: Exception) -> HTTPException:
    """HTTP error of an error of the agent or of the sessions."""
    kinds = {OverError: 410, FullError: 429}
    return refusal(next((status for kind, status in kinds.items() if isinstance(error, kind)), 400), str(error))


def _failed(error: Exception) -> HTTPException:
    return refusal(500, f"the policy failed: {error if isinstance(error, CoevoError) else 'see the log'}")


def _dialect(request: Request) -> Dialect:
    path = request.url.path
    return next((each for end, each in DIALECTS.items() if path.endswith(end)), DIALECTS["/v1/chat/completions"])
