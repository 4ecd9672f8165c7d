"""Terms between a server of chats and the dialects that it speaks: a call, its reply, and what they refuse."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from coevo.flows.endpoint.origin_guard import refusal
from coevo.flows.endpoint.request_body import first_mistake
from coevo.models.policy.message_prompts import check_messages
from coevo.tasks.gateway.chat_agent import ChatAnswer, ChatRequest
from coevo.tasks.gateway.session_store import SessionTask
from coevo.utilities.errors import CoevoError

MESSAGES, TOOLS, ANSWERS, STOPS = 2048, 128, 16, 16
"""Maximum messages, tools, answers and stops of a call."""
CALL_ID = 200
"""Maximum characters of a call's id."""
PIECE = 24
"""Characters of an answer's text in one event of a stream."""
FormT = TypeVar("FormT", bound=BaseModel)


class WirePart(BaseModel):
    """A part of a body: unknown fields and other types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Body(WirePart):
    """A whole body.

    Attributes:
        model: name of the model.
        task: task of the session, or of this request alone if it has no session; not a field of the dialects.
    """

    model: str
    task: SessionTask | None = None

    def settings(self, *names: str) -> dict[str, Any]:
        """Fields of these names that have a value."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A call in any dialect.

    Attributes:
        chat: what the agent gets.
        model: name of the model that the client asks for.
        stream: True to send the answer as events.
        wants: names of optional parts of the reply.
        task: task that the client names; None for that of the session.
        settings: what the client asks for and the policy's run decides, such as ``temperature``.
    """

    chat: ChatRequest
    model: str
    stream: bool
    wants: frozenset[str] = frozenset()
    task: SessionTask | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stamp:
    """Origin of an answer.

    Attributes:
        session: name of the session.
        mode: its mode.
        policy: ``RUN@N`` of the policy.
        bank: ``RUN@N`` of the bank; empty without one.
        entries: ids of the entries that the prompt shows.
        no_lesson: reason why no lesson of the task's own pool is among them; empty if some are.
    """

    session: str
    mode: str
    policy: str
    bank: str
    entries: tuple[str, ...]
    no_lesson: str

    def headers(self) -> dict[str, str]:
        """The stamp as response headers."""
        named = {"session": self.session, "mode": self.mode, "policy": self.policy, "bank": self.bank}
        return {f"x-coevo-{name}": value for name, value in named.items()} | {"x-coevo-entries": ",".join(self.entries)}

    def field(self, answers: Sequence[ChatAnswer], sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The stamp as a field of the reply, with number and branch of each answer, and why it could not be read."""
        named = {name: getattr(self, name) for name in ("session", "mode", "policy", "bank")}
        turns = [
            {"number": each.turn.number, "branch": each.turn.branch, "parsed": not each.fault, "fault": str(each.fault)}
            for each in answers
        ]
        shown = {"entries": list(self.entries), "no_lesson": self.no_lesson}
        return {**named, **shown, "turns": turns, "sampling": dict(sampling)}


@dataclass(frozen=True, slots=True)
class ChatReply:
    """Answers to a call.

    Attributes:
        id: name of the reply.
        created: its time, in seconds since 1970.
        model: ``RUN@N`` of the policy.
        prompt_ids: token ids of the prompt.
        answers: the answers.
        coevo: the stamp as a field.
        texts: text of each token of each answer, if the client wants them.
    """

    id: str
    created: int
    model: str
    prompt_ids: tuple[int, ...]
    answers: tuple[ChatAnswer, ...]
    coevo: Mapping[str, Any]
    texts: tuple[tuple[str, ...], ...] = ()

    @property
    def drawn(self) -> int:
        """Number of drawn tokens."""
        return sum(len(answer.turn.token_ids) for answer in self.answers)


class ReplyStream(Protocol):
    """Server-sent events of one reply, in the order of the calls."""

    def piece(self, index: int, text: str, reasoning: str) -> Iterator[bytes]:
        """Next text of an answer; ``reasoning`` is the thinking before it, and the same for all pieces."""
        ...

    def rest(self, reply: ChatReply) -> Iterator[bytes]:
        """Everything that was not sent yet, up to the end of the stream."""
        ...


class Dialect(Protocol):
    """Form of bodies, replies and errors."""

    def parse(self, body: bytes) -> ChatCall:
        """Read a body.

        Raises:
            HTTPException: 422 for another form, 413 for too much.
        """
        ...

    def document(self, call: ChatCall, reply: ChatReply) -> dict[str, Any]:
        """The reply as one JSON document."""
        ...

    def stream(self, call: ChatCall, begun: ChatReply) -> "ReplyStream":
        """The reply as server-sent events; ``begun`` has no answers yet."""
        ...

    def error(self, status: int, message: str, code: str | None) -> dict[str, Any]:
        """An error as JSON."""
        ...


def body_as(form: type[FormT], body: bytes) -> FormT:
    """Read a body of a form.

    Raises:
        HTTPException: 422, with the first fault in one line.
    """
    try:
        return form.model_validate_json(body)
    except ValidationError as error:
        raise refusal(422, first_mistake(error, form)) from None


def checked(chat: ChatRequest) -> ChatRequest:
    """The request, if its messages can be answered.

    Raises:
        HTTPException: 422 if not.
    """
    try:
        check_messages(chat.messages)
    except CoevoError as error:
        raise refusal(422, str(error)) from None
    return chat


def pieces(text: str) -> Iterator[str]:
    """A text in the pieces of a stream."""
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


def event(document: Mapping[str, Any], name: str = "") -> bytes:
    """One server-sent event."""
    data = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return f"{f'event: {name}' + chr(10) if name else ''}data: {data}\n\n".encode(errors="replace")
