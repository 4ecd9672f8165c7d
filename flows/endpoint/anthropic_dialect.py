"""Anthropic's messages: blocks of text, tools and their results, and streams."""

import json
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from coevo.flows.endpoint.dialect import (
    CALL_ID,
    MESSAGES,
    STOPS,
    TOOLS,
    Body,
    ChatCall,
    ChatReply,
    WirePart,
    body_as,
    checked,
    event,
    pieces,
)
from coevo.flows.endpoint.origin_guard import refusal
from coevo.records.message import Message, MessageCall
from coevo.tasks.gateway.chat_agent import ChatAnswer, ChatRequest

REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
         429: "rate_limit_error"}  # fmt: skip


class TextBlock(WirePart):
    """A text; fields that clients add to one that they repeat are ignored."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["text"]
    text: str


class ToolUse(WirePart):
    """A call of a tool in an answer that a history repeats."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["tool_use"]
    id: Annotated[str, Field(max_length=CALL_ID)]
    name: str
    input: dict[str, Any]


class ToolResultBlock(WirePart):
    """Result of a call."""

    type: Literal["tool_result"]
    tool_use_id: str
    content: str | list[TextBlock] = ""
    is_error: bool | None = None
    cache_control: dict[str, Any] | None = None


UserBlock = Annotated[TextBlock | ToolResultBlock, Field(discriminator="type")]
AnswerBlock = Annotated[TextBlock | ToolUse, Field(discriminator="type")]


class UserTurn(WirePart):
    """A user's message."""

    role: Literal["user"]
    content: str | list[UserBlock]


class AnswerTurn(WirePart):
    """An answer that a history repeats."""

    role: Literal["assistant"]
    content: str | list[AnswerBlock]


class ToolSpec(WirePart):
    """A tool; one that the server would run is none."""

    type: Literal["custom"] | None = None
    name: Annotated[str, Field(max_length=128)]
    description: str | None = None
    input_schema: dict[str, Any]
    cache_control: dict[str, Any] | None = None


class ToolChoice(WirePart):
    """Permission for answers to hold calls."""

    type: Literal["auto", "none"]
    disable_parallel_tool_use: bool | None = None


class NoThinking(WirePart):
    """Thinking is the run's to decide."""

    type: Literal["disabled"]


class MessagesBody(Body):
    """A request; what is here and unused has no effect on what a policy draws, or is the run's to decide."""

    max_tokens: Annotated[int, Field(ge=1)]
    messages: Annotated[
        list[Annotated[UserTurn | AnswerTurn, Field(discriminator="role")]],
        Field(min_length=1, max_length=MESSAGES, fail_fast=True),
    ]
    system: str | list[TextBlock] | None = None
    stop_sequences: Annotated[list[str], Field(max_length=STOPS)] | None = None
    stream: bool | None = None
    tools: Annotated[list[ToolSpec], Field(max_length=TOOLS)] | None = None
    tool_choice: ToolChoice | None = None
    thinking: NoThinking | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    metadata: dict[str, Any] | None = None
    service_tier: str | None = None


class Anthropic:
    """The dialect."""

    def parse(self, body: bytes) -> ChatCall:
        """Read a request for a message."""
        given = body_as(MessagesBody, body)
        system = _text(given.system)
        if "" in (given.stop_sequences or ()):
            raise refusal(422, "stop_sequences: a text is empty: leave it out")
        listed = [message for each in given.messages for message in _messages(each)]
        chat = ChatRequest(
            messages=(*([Message("system", system)] if system else []), *listed),
            tools=json.dumps(list(map(_tool, given.tools or ())), ensure_ascii=False),
            max_tokens=given.max_tokens,
            stop=tuple(given.stop_sequences or ()),
            calls=given.tool_choice is None or given.tool_choice.type == "auto",
        )
        settings = given.settings("temperature", "top_p", "top_k")
        return ChatCall(checked(chat), given.model, bool(given.stream), task=given.task, settings=settings)

    def document(self, call: ChatCall, reply: ChatReply) -> dict[str, Any]:
        """The reply as a message."""
        (answer,) = reply.answers
        usage = {"input_tokens": len(reply.prompt_ids), "output_tokens": reply.drawn}
        return {**_head(reply), **_end(answer), "content": _blocks(answer), "usage": usage, "coevo": dict(reply.coevo)}

    def stream(self, call: ChatCall, begun: ChatReply) -> "BlockStream":
        """The reply as events of a message."""
        return BlockStream(begun)

    def error(self, status: int, message: str, code: str | None) -> dict[str, Any]:
        """An error as Anthropic's clients read it."""
        kind = "api_error" if status >= 500 else KINDS.get(status, "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}


class BlockStream:
    """Events of a message, its blocks and their pieces. Thinking is not shown."""

    def __init__(self, begun: ChatReply) -> None:
        self._begun, self._is_open, self._sent = begun, False, ""

    def piece(self, index: int, text: str, reasoning: str) -> Iterator[bytes]:
        """Next text of the only answer, as ``ReplyStream``."""
        yield from self._start()
        if not self._sent:
            yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        yield from _deltas(0, ({"type": "text_delta", "text": part} for part in pieces(text)))
        self._sent += text

    def rest(self, reply: ChatReply) -> Iterator[bytes]:
        """Everything that was not sent yet, as ``ReplyStream``."""
        (answer,) = reply.answers
        yield from self._start()
        for index, block in enumerate(_blocks(answer)):
            if block["type"] == "text":
                yield from self.piece(index, block["text"].removeprefix(self._sent), "")
            else:
                yield from _call_events(index, block)
            yield _event("content_block_stop", index=index)
        usage = {"output_tokens": reply.drawn}
        yield _event("message_delta", delta=_end(answer), usage=usage, coevo=dict(reply.coevo))
        yield _event("message_stop")

    def _start(self) -> Iterator[bytes]:
        if self._is_open:
            return
        self._is_open, begun = True, self._begun
        usage = {"input_tokens": len(begun.prompt_ids), "output_tokens": 0}
        empty = {**_head(begun), "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        yield _event("message_start", message={**empty, "coevo": dict(begun.coevo)})


def _messages(given: UserTurn | AnswerTurn) -> Iterator[Message]:
    """Messages of a turn: results of tools are messages of their own, before the text that stands with them."""
    if isinstance(given, AnswerTurn):
        blocks = [] if isinstance(given.content, str) else given.content
        text = (
            given.content
            if isinstance(given.content, str)
            else _text([each for each in blocks if isinstance(each, TextBlock)])
        )
        used = (each for each in blocks if isinstance(each, ToolUse))
        calls = (MessageCall.of(each.name, json.dumps(each.input, ensure_ascii=False)) for each in used)
        yield Message.answer(text, tuple(calls))
        return
    if isinstance(given.content, str):
        yield Message("user", given.content)
        return
    for block in given.content:
        if isinstance(block, ToolResultBlock):
            yield Message("tool", _text(block.content))
    if texts := [block for block in given.content if isinstance(block, TextBlock)]:
        yield Message("user", _text(texts))


def _text(content: str | list[TextBlock] | None) -> str:
    return content if isinstance(content, str) else "\n".join(block.text for block in content or ())


def _tool(tool: ToolSpec) -> dict[str, Any]:
    described = {} if tool.description is None else {"description": tool.description}
    return {"type": "function", "function": {"name": tool.name, **described, "parameters": tool.input_schema}}


def _blocks(answer: ChatAnswer) -> list[dict[str, Any]]:
    said = answer.turn.answer
    texts = [{"type": "text", "text": said.text}] if said.text or not said.calls else []
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in said.calls
    ]
    return [*texts, *calls]


def _call_events(index: int, block: dict[str, Any]) -> Iterator[bytes]:
    yield _event("content_block_start", index=index, content_block={**block, "input": {}})
    written = json.dumps(block["input"], ensure_ascii=False)
    yield from _deltas(index, ({"type": "input_json_delta", "partial_json": piece} for piece in pieces(written)))


def _deltas(index: int, deltas: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)


def _head(reply: ChatReply) -> dict[str, Any]:
    return {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": reply.model}


def _end(answer: ChatAnswer) -> dict[str, Any]:
    reason = "stop_sequence" if answer.stop else REASONS[answer.reason]
    return {"stop_reason": reason, "stop_sequence": answer.stop or None}


def _event(name: str, **fields: Any) -> bytes:
    return event({"type": name, **fields}, name)
