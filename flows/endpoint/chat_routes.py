"""Chats over HTTP in the dialects: from a body to answers with their origin, and errors in the dialect's own form."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
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
from coevo.tasks.gateway.answer_stream import AnswerPiece, AnswerStream
from coevo.tasks.gateway.chat_agent import ChatAgent, ChatAnswer, Prompted, PromptTooLongError
from coevo.tasks.gateway.gateway_session import GatewaySession, OverError
from coevo.tasks.gateway.memory_bound import FullError
from coevo.tasks.play.retrieve import NO_BANK
from coevo.utilities.errors import CoevoError

OPENAI = OpenAI()
DIALECTS: Mapping[str, Dialect] = {"/v1/chat/completions": OPENAI, "/v1/messages": Anthropic()}
"""Dialects by the end of their address."""
KEEP_ALIVE_S = 10.0
"""Seconds after which a stream that waits sends a comment."""
LOGGER = logging.getLogger("uvicorn.error")


@dataclass(frozen=True, slots=True)
class ChatExchange:
    """A call whose prompt is written, and whose reply is yet to be drawn.

    Attributes:
        call: the call.
        session: its session.
        prompted: its prompt.
        stamp: where its answers are from.
        begun: the reply without its answers.
        stream: answers on their way to the client; None if it wants the whole reply.
    """

    call: ChatCall
    session: GatewaySession
    prompted: Prompted
    stamp: Stamp
    begun: ChatReply
    stream: AnswerStream | None


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

    async def prompted(self, session: GatewaySession, call: ChatCall) -> ChatExchange:
        """Write the prompt of a call, whose reply is yet to be drawn.

        Raises:
            HTTPException: another policy is asked for.
            CoevoError: the prompt cannot be written.
        """
        self._check_model(call.model)
        prompted = await self.agent.prompt(session, call.chat)
        lacking = prompted.no_lesson if self.bank else NO_BANK
        stamp = Stamp(session.name, session.mode, self.policy, self.bank, prompted.entries, lacking)
        coevo, now = stamp.field((), self.sampling), int(time())
        begun = ChatReply(token_hex(12), now, stamp.policy, prompted.prompt_ids, (), coevo)
        stream = self.agent.stream(call.chat) if call.stream else None
        return ChatExchange(call, session, prompted, stamp, begun, stream)

    async def reply(self, exchange: ChatExchange) -> ChatReply:
        """Draw the reply.

        Raises:
            CoevoError: the policy failed, or the session cannot have the answers.
        """
        call = exchange.call
        answers = await self.agent.draw(exchange.session, call.chat, exchange.prompted, exchange.stream)
        texts = self._texts(answers) if "logprobs" in call.wants else ()
        coevo = exchange.stamp.field(answers, self.sampling)
        return replace(exchange.begun, answers=tuple(answers), coevo=coevo, texts=texts)

    async def respond(
        self, request: Request, exchange: ChatExchange, answered: "asyncio.Future[ChatReply]"
    ) -> Response:
        """The reply in the dialect of the request's address, once it is drawn; a stream begins at once.

        Raises:
            HTTPException: the policy failed.
            CoevoError: the session cannot have the answers.
        """
        dialect, headers = dialect_of(request), exchange.stamp.headers()
        if exchange.stream is not None:
            events = _events(dialect, exchange, exchange.stream, answered)
            return StreamingResponse(events, headers=headers, media_type="text/event-stream")
        try:
            reply = await asyncio.shield(answered)
        except (OverError, FullError):
            raise
        except CoevoError as error:
            LOGGER.error("%s", error)
            raise _failed(error) from error
        return JSONResponse(dialect.document(exchange.call, reply), headers=headers)

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


async def _events(
    dialect: Dialect, exchange: ChatExchange, stream: AnswerStream, answered: "asyncio.Future[ChatReply]"
) -> AsyncIterator[bytes]:
    """Events of a reply: what is sure of it while it is drawn, and the rest; comments, so that no client gives up."""
    sent = dialect.stream(exchange.call, exchange.begun)
    try:
        async for piece in _pieces(stream, answered):
            if piece is None:
                yield b": waiting\n\n"
                continue
            for event in sent.piece(*piece):
                yield event
    finally:
        if not answered.done():
            stream.close()
            answered.add_done_callback(lambda each: each.exception())  # which nobody waits for
    try:
        reply = answered.result()
    except Exception as error:
        LOGGER.error("an answer failed", exc_info=error)
        failure = _status(error) if isinstance(error, OverError | FullError) else _failed(error)
        body = JSONResponse(dialect.error(failure.status_code, failure.detail, None)).body
        yield b"event: error\ndata: " + bytes(body) + b"\n\n"
        return
    for event in sent.rest(reply):
        yield event


async def _pieces(stream: AnswerStream, answered: "asyncio.Future[ChatReply]") -> AsyncIterator[AnswerPiece | None]:
    """Pieces of a stream until its answers are whole; None where a client has waited for long."""
    arriving = asyncio.ensure_future(stream.pieces.get())
    try:
        while not answered.done():
            # It raises nothing of the answer's own.
            either: set[asyncio.Future[Any]] = {answered, arriving}
            await asyncio.wait(either, timeout=KEEP_ALIVE_S, return_when=asyncio.FIRST_COMPLETED)
            if arriving.done():
                yield arriving.result()
                arriving = asyncio.ensure_future(stream.pieces.get())
            elif not answered.done():
                yield None
    finally:
        arriving.cancel()


def _status(error: Exception) -> HTTPException:
    """HTTP error of an error of the agent or of the sessions."""
    kinds = {OverError: 410, FullError: 429}
    return refusal(next((status for kind, status in kinds.items() if isinstance(error, kind)), 400), str(error))


def _failed(error: Exception) -> HTTPException:
    return refusal(500, f"the policy failed: {error if isinstance(error, CoevoError) else 'see the log'}")
