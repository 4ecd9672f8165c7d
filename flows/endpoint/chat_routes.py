"""Chats over HTTP in the dialects: from a body to answers with their origin, and errors in the dialect's own form."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass
from secrets import token_hex
from time import time
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from coevo.flows.endpoint.anthropic_dialect import Anthropic
from coevo.flows.endpoint.dialect import ChatCall, ChatReply, Dialect, Stamp
from coevo.flows.endpoint.openai_dialect import OpenAI
from coevo.flows.endpoint.origin_guard import refusal
from coevo.flows.endpoint.request_body import body_of
from coevo.tasks.gateway.chat_agent import ChatAgent, ChatAnswer, Prompted, PromptTooLongError
from coevo.tasks.gateway.gateway_session import FullError, GatewaySession, OverError
from coevo.utilities.errors import CoevoError

OPENAI = OpenAI()
DIALECTS: Mapping[str, Dialect] = {"/v1/chat/completions": OPENAI, "/v1/messages": Anthropic()}
"""Dialects by the end of their address."""
KEEP_ALIVE_S = 10.0
"""Seconds after which a stream that waits sends a comment."""
LOGGER = logging.getLogger("uvicorn.error")


@dataclass(frozen=True, slots=True)
class ServedChat:
    """A policy and its bank, as clients of the dialects ask them.

    Attributes:
        agent: answers.
        policy: ``RUN@N`` of the policy.
        bank: ``RUN@N`` of the bank; empty without one.
        body: maximum bytes of a request.
        sampling: settings with which every answer is drawn.
        version: ``MODEL/VERSION`` that the policy is registered as; empty if it is not.
        strict: True to refuse other sampling; otherwise it has no effect, and the reply says so.
    """

    agent: ChatAgent
    policy: str
    bank: str
    body: int
    sampling: Mapping[str, Any]
    version: str = ""
    strict: bool = False

    async def read(self, request: Request) -> ChatCall:
        """Read a request in the dialect of its address.

        Raises:
            HTTPException: it is none, or asks for settings that the policy's run decides.
        """
        call = dialect_of(request).parse(await body_of(request, self.body))
        if self.strict:
            self._check_settings(call.settings)
        return call

    async def prompted(self, session: GatewaySession, call: ChatCall) -> tuple[Stamp, Coroutine[Any, Any, ChatReply]]:
        """Write the prompt of a call; where its answers are from, and the reply, which is yet to be drawn.

        Raises:
            HTTPException: another policy is asked for.
            CoevoError: the prompt cannot be written.
        """
        self._check_model(call.model)
        prompted = await self.agent.prompt(session, call.chat)
        stamp = Stamp(session.name, session.mode, self.policy, self.bank, prompted.entries)
        return stamp, self._reply(session, call, prompted, stamp)

    async def respond(
        self, request: Request, call: ChatCall, stamp: Stamp, answered: "asyncio.Future[ChatReply]"
    ) -> Response:
        """The reply in the dialect of the request's address, once it is drawn; a stream begins at once.

        Raises:
            HTTPException: the policy failed.
            CoevoError: the session cannot have the answers.
        """
        dialect = dialect_of(request)
        if call.stream:
            events = _events(dialect, call, answered)
            return StreamingResponse(events, headers=stamp.headers(), media_type="text/event-stream")
        try:
            reply = await asyncio.shield(answered)
        except (OverError, FullError):
            raise
        except CoevoError as error:
            LOGGER.error("%s", error)
            raise _failed(error) from error
        return JSONResponse(dialect.document(call, reply), headers=stamp.headers())

    def models(self) -> Response:
        """List the policy that answers."""
        policy = {"id": self.policy, "object": "model", "created": 0, "owned_by": "coevo"}
        return JSONResponse({"object": "list", "data": [policy]})

    def _check_model(self, model: str) -> None:
        registered = self.version.rpartition("/")[0]
        fixed = "@" in model or (registered and model.startswith(f"{registered}/"))
        if fixed and model not in (self.policy, self.version):
            served = f"{self.policy}, registered as {self.version}," if registered else f"{self.policy},"
            raise refusal(404, f"model {model[:80]}: this server serves {served} and no other revision")

    def _check_settings(self, settings: Mapping[str, Any]) -> None:
        for name, value in settings.items():
            own = self.sampling.get(name)
            if value != own:
                drawn = "" if own is None else f" ({name}={own})"
                raise refusal(422, f"{name}: the settings of the policy's run decide this{drawn}: leave it out")

    async def _reply(self, session: GatewaySession, call: ChatCall, prompted: Prompted, stamp: Stamp) -> ChatReply:
        answers = await self.agent.draw(session, call.chat, prompted)
        texts = self._texts(answers) if "logprobs" in call.wants else ()
        coevo = stamp.field(answers, self.sampling)
        return ChatReply(token_hex(12), int(time()), stamp.policy, prompted.prompt_ids, tuple(answers), coevo, texts)

    def _texts(self, answers: list[ChatAnswer]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(self.agent.texts(answer.turn.token_ids)) for answer in answers)


def is_chat(request: Request) -> bool:
    """Report whether the address of a request is that of a dialect."""
    return request.url.path.endswith(tuple(DIALECTS))


def dialect_of(request: Request) -> Dialect:
    """Dialect of a request's address; OpenAI's for others."""
    return next((each for end, each in DIALECTS.items() if request.url.path.endswith(end)), OPENAI)


async def refuse(request: Request, error: Exception) -> Response:
    """Answer of one line in the request's dialect."""
    refused = error if isinstance(error, HTTPException) else _status(error)
    code = "context_length_exceeded" if isinstance(error, PromptTooLongError) else None
    body = dialect_of(request).error(refused.status_code, refused.detail, code)
    return JSONResponse(body, refused.status_code, refused.headers)


async def fail(request: Request, _: Exception) -> Response:
    """Answer of one line; the server's log gets the traceback."""
    return JSONResponse(dialect_of(request).error(500, "the server failed: see its log", None), 500)


async def _events(dialect: Dialect, call: ChatCall, answered: "asyncio.Future[ChatReply]") -> AsyncIterator[bytes]:
    """Events of a reply; comments while it is drawn, so that no client gives up."""
    while not answered.done():
        await asyncio.wait({answered}, timeout=KEEP_ALIVE_S)  # raises nothing of the answer's own
        if not answered.done():
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


def _status(error: Exception) -> HTTPException:
    """HTTP error of an error of the agent or of the sessions."""
    kinds = {OverError: 410, FullError: 429}
    return refusal(next((status for kind, status in kinds.items() if isinstance(error, kind)), 400), str(error))


def _failed(error: Exception) -> HTTPException:
    return refusal(500, f"the policy failed: {error if isinstance(error, CoevoError) else 'see the log'}")
