"""OpenAI's chat completions: tools, several answers, log-probs, and streams."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from coevo.flows.endpoint.dialect import (
    ANSWERS,
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

Positive = Annotated[int, Field(ge=1)]
Zero = Annotated[float, Field(ge=0, le=0)]


class TextPart(WirePart):
    """A part of a content; images and sounds are none."""

    type: Literal["text"]
    text: str


MessageContent = str | list[TextPart]


class AskedFunction(WirePart):
    """Function of a call."""

    name: str
    arguments: str


class AskedCall(WirePart):
    """A call that a client's history repeats."""

    model_config = ConfigDict(extra="ignore")

    id: Annotated[str, Field(max_length=CALL_ID)]
    type: Literal["function"] = "function"
    function: AskedFunction


class TextMessage(WirePart):
    """A message with a text."""

    role: Literal["system", "developer", "user", "tool"]
    content: MessageContent
    name: str | None = None
    tool_call_id: str | None = None


class AnswerMessage(WirePart):
    """An answer that a client's history repeats; fields that clients add to it are ignored."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["assistant"]
    content: MessageContent | None = None
    tool_calls: list[AskedCall] | None = None


class FunctionForm(WirePart):
    """Description of a tool."""

    name: Annotated[str, Field(max_length=128)]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ToolForm(WirePart):
    """A tool."""

    type: Literal["function"]
    function: FunctionForm


class StreamOptions(WirePart):
    """Options of a stream."""

    include_usage: bool = False
    include_obfuscation: bool = False


class TextFormat(WirePart):
    """Form of the answer: text alone."""

    type: Literal["text"]


class CompletionBody(Body):
    """A request; what is here and unused has no effect on what a policy draws, or is the run's to decide."""

    messages: Annotated[
        list[Annotated[TextMessage | AnswerMessage, Field(discriminator="role")]],
        Field(min_length=1, max_length=MESSAGES, fail_fast=True),
    ]
    n: Annotated[int, Field(ge=1, le=ANSWERS)] | None = None
    max_tokens: Positive | None = None
    max_completion_tokens: Positive | None = None
    stop: str | Annotated[list[str], Field(max_length=STOPS)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: Annotated[list[ToolForm], Field(max_length=TOOLS)] | None = None
    tool_choice: Literal["auto", "none"] | None = None
    parallel_tool_calls: bool | None = None
    response_format: TextFormat | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=0)] | None = None
    return_token_ids: bool | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: Zero | None = None
    presence_penalty: Zero | None = None
    user: str | None = None
    metadata: dict[str, str] | None = None
    store: bool | None = None
    service_tier: str | None = None
    reasoning_effort: str | None = None


class OpenAI:
    """The dialect."""

    def parse(self, body: bytes) -> ChatCall:
        """Read a request for chat completions."""
        given = body_as(CompletionBody, body)
        tools = [each.model_dump(exclude_none=True) for each in given.tools or ()]
        stops = (given.stop,) if isinstance(given.stop, str) else tuple(given.stop or ())
        if "" in stops:
            raise refusal(422, "stop: a text is empty: leave it out")
        chat = ChatRequest(
            messages=tuple(map(_message, given.messages)),
            tools=json.dumps(tools, ensure_ascii=False),
            count=given.n or 1,
            max_tokens=given.max_completion_tokens or given.max_tokens,
            stop=stops,
            seed=given.seed,
            calls=given.tool_choice != "none",
        )
        wants = {"logprobs": given.logprobs, "token_ids": given.return_token_ids,
                 "usage": given.stream_options is not None and given.stream_options.include_usage}  # fmt: skip
        named = frozenset(name for name, wanted in wants.items() if wanted)
        settings = given.settings("temperature", "top_p", "reasoning_effort")
        return ChatCall(checked(chat), given.model, bool(given.stream), named, given.task, settings)

    def document(self, call: ChatCall, reply: ChatReply) -> dict[str, Any]:
        """The reply as a chat completion."""
        choices = [_choice(call, reply, index) for index in range(len(reply.answers))]
        ids = {"prompt_token_ids": list(reply.prompt_ids)} if "token_ids" in call.wants else {}
        head = _head(reply, "chat.completion")
        return {**head, "choices": choices, "usage": _usage(reply), "coevo": dict(reply.coevo), **ids}

    def stream(self, call: ChatCall, begun: ChatReply) -> "ChunkStream":
        """The reply as chunks."""
        return ChunkStream(call, begun)

    def error(self, status: int, message: str, code: str | None) -> dict[str, Any]:
        """An error as OpenAI's clients read it."""
        kind = "server_error" if status >= 500 else "invalid_request_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}


class ChunkStream:
    """Chunks of a reply: roles, texts in pieces, calls, ends, the stamp, and the usage if wanted.

    Args:
        call: the request.
        begun: the reply without its answers.
    """

    def __init__(self, call: ChatCall, begun: ChatReply) -> None:
        self._call, self._head = call, _head(begun, "chat.completion.chunk")
        self._sent: dict[int, str] = {}
        self._thought: set[int] = set()

    def piece(self, index: int, text: str, reasoning: str) -> Iterator[bytes]:
        """Next text of an answer, as ``ReplyStream``."""
        if index not in self._sent:
            self._sent[index] = ""
            yield self._chunk(index, {"role": "assistant", "content": ""})
        if reasoning and index not in self._thought:
            self._thought.add(index)
            yield self._chunk(index, {"reasoning_content": reasoning})
        for part in pieces(text):
            yield self._chunk(index, {"content": part})
        self._sent[index] += text

    def rest(self, reply: ChatReply) -> Iterator[bytes]:
        """Everything that was not sent yet, as ``ReplyStream``."""
        for index, answer in enumerate(reply.answers):
            text = answer.turn.answer.text.removeprefix(self._sent.get(index, ""))
            yield from self.piece(index, text, answer.reasoning)
            for number, called in enumerate(answer.turn.answer.calls):
                yield self._chunk(index, {"tool_calls": [{"index": number, **_call(called)}]})
            last = _choice(self._call, reply, index)
            del last["message"]
            yield event({**self._head, "choices": [{**last, "delta": {}}], "coevo": dict(reply.coevo)})
        if "usage" in self._call.wants:
            yield event({**self._head, "choices": [], "usage": _usage(reply)})
        yield b"data: [DONE]\n\n"

    def _chunk(self, index: int, delta: dict[str, Any]) -> bytes:
        return event({**self._head, "choices": [{"index": index, "delta": delta, "finish_reason": None}]})


def _choice(call: ChatCall, reply: ChatReply, index: int) -> dict[str, Any]:
    answer = reply.answers[index]
    said = answer.turn.answer
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None, "refusal": None}
    if said.calls:
        message["tool_calls"] = [_call(each) for each in said.calls]
    elif not said.text:
        message["content"] = ""
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    made = {"index": index, "message": message, "finish_reason": answer.reason, "logprobs": None}
    if "logprobs" in call.wants:
        made["logprobs"] = {"content": _logprobs(answer, reply.texts[index]), "refusal": None}
    return made | ({"token_ids": list(answer.turn.token_ids)} if "token_ids" in call.wants else {})


def _message(given: TextMessage | AnswerMessage) -> Message:
    text = _text(given.content)
    if isinstance(given, AnswerMessage):
        calls = (MessageCall.of(each.function.name, each.function.arguments) for each in given.tool_calls or ())
        return Message.answer(text, tuple(calls))
    return Message("system" if given.role == "developer" else given.role, text)


def _text(content: MessageContent | None) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content or ())


def _call(call: MessageCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _logprobs(answer: ChatAnswer, texts: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {"token": text, "logprob": logprob, "bytes": None, "top_logprobs": []}
        for text, logprob in zip(texts, answer.turn.logprobs, strict=True)
    ]


def _head(reply: ChatReply, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{reply.id}", "object": kind, "created": reply.created, "model": reply.model}


def _usage(reply: ChatReply) -> dict[str, int]:
    asked, drawn = len(reply.prompt_ids), reply.drawn
    return {"prompt_tokens": asked, "completion_tokens": drawn, "total_tokens": asked + drawn}
