"""Body of an endpoint's answer: a chat completion, of which nothing is believed unchecked."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Annotated, Any

from openai import APIStatusError
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from coevo.models.answers.thinking import without_thinking
from coevo.records.writing import Reply, estimated

MAX_BODY_BYTES = 4 * 2**20
"""Maximum bytes of a body."""
CUT = ("length", "max_tokens", "max_output_tokens", "model_length")
"""Ends of an answer at its limit of tokens."""
FILTERED = (
    "content_filter",
    "content_filtered",
    "safety",
    "sensitive",
    "recitation",
    "prohibited_content",
    "blocklist",
)
"""Ends of an answer that a filter withheld."""
INTERRUPTED = ("error", "abort", "aborted", "cancelled", "canceled", "network_error", "insufficient_system_resource")
"""Ends of an answer that the endpoint could not finish."""
CALLS = ("tool_calls", "function_call")
"""Ends of an answer that calls a tool, though none was offered."""
LIMIT = "bank.writer.model.max_new_tokens"
"""Setting of a writer model's longest answer."""
Count = Annotated[int, Field(ge=0, le=2**31)]
BROKEN = 500
"""Lowest status of a server that cannot answer."""
BUSY = (503, 529)
"""Status of a server with too much to do, which may ask to wait."""
TRANSIENT = (408, 409, 425)
"""Status below ``BROKEN`` of a request that may be sent again."""
PERMANENT = (401, 402, 403, 404, 405, 410)
"""Status that every other question would have too."""
MAX_PAUSE_S = 86_400.0
"""Most seconds that an endpoint is believed to ask for."""
_QUOTA = re.compile(r"billing|payment_required|insufficient_(?:quota|balance|credits|funds)", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"model_not_found|\b(?:no such|unknown|invalid|unsupported|no) model\b"
    r"|\bmodel\b.{0,120}?\b(?:not found|(?:does|do) not exist|doesn't exist|is not a valid|is not available)",
    re.IGNORECASE | re.DOTALL,
)
_KINDS = {
    429: re.compile(r"rate.?limit|too.?many|throttl|resource.?exhausted", re.IGNORECASE),
    401: re.compile(r"auth|permission|api.?key|forbidden", re.IGNORECASE),
    404: re.compile(r"not.?found", re.IGNORECASE),
    400: re.compile(r"invalid|bad.?request|unsupported|context.?length", re.IGNORECASE),
}
"""Status of an error that names its kind alone."""


class After(Enum):
    """Consequence of a failure."""

    WAIT = "all wait, and the question is asked again"
    AGAIN = "the question may be asked again"
    STOP = "nothing is asked for a while"
    NEXT = "the others are asked"


@dataclass(frozen=True, slots=True)
class Failure:
    """Request without an answer.

    Attributes:
        fault: reason, for a person.
        after: its consequence.
        pause: seconds that the endpoint asks for, 0 if it does not say.
        dead: True if the endpoint may not be there at all.
        prompt_tokens: tokens of the prompt that it cost all the same.
        answer_tokens: tokens that were generated all the same.
        unread: True if an answer came that is no chat completion.
        silent: True if the model's answer came and has no text: it refuses, a filter withheld it, or it only thought.
        unsure: True if nothing came, though the endpoint may have received the request, and charge for it.
    """

    fault: str
    after: After
    pause: float = 0.0
    dead: bool = False
    prompt_tokens: int = 0
    answer_tokens: int = 0
    unread: bool = False
    silent: bool = False
    unsure: bool = False


def after(status: int, error: object, pause: float = 0.0) -> After:
    """Consequence of an error with a status.

    Args:
        status: of HTTP, also where the endpoint says it in a body that arrives with 200.
        error: content of the error.
        pause: seconds that the endpoint asks for.
    """
    said = f"{error}"
    if _QUOTA.search(" ".join(_names(error))):
        return After.STOP
    if status == 429 or (status in BUSY and pause):
        return After.WAIT
    if status in PERMANENT or status // 100 == 3 or (status == 400 and _NO_MODEL.search(said)):
        return After.STOP
    return After.AGAIN if status >= BROKEN or status in TRANSIENT else After.NEXT


def status_in(error: object) -> int:
    """Status of an error in a body that arrived with 200; 500 if it names none."""
    for name in _names(error):
        if name.isdecimal() and 300 <= int(name[:9]) < 600:
            return int(name)
        for status, kind in _KINDS.items():
            if kind.search(name):
                return status
    return BROKEN


def words_of(error: object) -> str:
    """Reason that an endpoint gives, with that of the provider behind it."""
    if not isinstance(error, Mapping):
        return f"{error or ''}"
    said = error.get("message") or error.get("detail") or error
    more = error.get("metadata")
    behind = more.get("raw") if isinstance(more, Mapping) else None
    return f"{said}: {behind}" if behind else f"{said}"


def message(error: APIStatusError) -> str:
    """Reason of a status."""
    return words_of(error.body) or str(error.response.reason_phrase)


def pause_of(headers: Mapping[str, str]) -> float:
    """Seconds that an endpoint asks for: a number, or a date; 0 if it does not say."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = headers.get(name, "").strip()
        try:
            seconds = float(said) / unit
        except ValueError:
            seconds = _until(said, headers.get("date", ""))
        if math.isfinite(seconds) and seconds > 0:
            return min(seconds, MAX_PAUSE_S)
    return 0.0


def _until(date: str, now: str) -> float:
    """Seconds from the endpoint's own time to a date: the clocks of two machines differ."""
    try:
        return (parsedate_to_datetime(date) - parsedate_to_datetime(now)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _names(error: Any) -> list[str]:
    """Code, kind and status of an error, as far as it names them."""
    if not isinstance(error, Mapping):
        return []
    return [f"{error[name]}" for name in ("code", "status", "type") if isinstance(error.get(name), str | int)]


class Usage(BaseModel):
    """Tokens that a body reports.

    Attributes:
        prompt_tokens: of the question; None or 0 if it reports none.
        completion_tokens: of the answer, likewise.
    """

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None


class _Body(BaseModel):
    usage: Usage | None = None


class _AnswerPart(BaseModel, extra="allow"):
    type: str
    text: Any = None
    refusal: Any = None


class _Message(BaseModel):
    content: str | _AnswerPart | list[_AnswerPart | str] | None = None
    refusal: str | None = None
    reasoning: Any = None
    reasoning_content: Any = None
    thinking: Any = None

    @property
    def parts(self) -> list["_AnswerPart | str"]:
        """Parts of the content; text is one part."""
        return self.content if isinstance(self.content, list) else [self.content or ""]

    @property
    def text(self) -> str:
        """The text, without parts of thinking."""
        texts = [part if isinstance(part, str) else part.text for part in self.parts if _is_said(part)]
        return "".join(text for text in texts if isinstance(text, str))

    @property
    def refused(self) -> str:
        """Reason of a model that refuses to answer; empty if it does not."""
        said = [part.refusal for part in self.parts if isinstance(part, _AnswerPart)]
        return self.refusal or "".join(each for each in said if isinstance(each, str))

    @property
    def thought(self) -> str:
        """Thinking beside the text; empty if there is none."""
        thought = self.reasoning_content or self.reasoning or self.thinking
        inside = [part.model_extra for part in self.parts if isinstance(part, _AnswerPart) and "thinking" in part.type]
        return f"{thought or inside or ''}"


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


def _first(choices: Any) -> Any:
    """The choice that is read: a flaw in another one loses nothing."""
    return choices[:1] if isinstance(choices, list) else choices


class _Completion(BaseModel):
    choices: Annotated[list[_Choice], BeforeValidator(_first), Field(min_length=1)]
    usage: Usage | None = None


class _Mistaken(BaseModel):
    error: Any = None
    choices: Any = None


def read(body: bytes, most: int = MAX_BODY_BYTES, limit: str = LIMIT) -> Reply | Failure:
    """Read a body as a reply, without its thinking; as a failure if it has no answer, though it arrived with 200.

    The tokens of an answer are estimated if the body reports none: a refusal is not free either, but an error is. Those
    of the question are then 0.

    Args:
        body: what the endpoint sent.
        most: maximum tokens of an answer.
        limit: setting of this maximum.
    """
    if len(body) > MAX_BODY_BYTES:
        return _unread(body, f"the endpoint's answer is longer than {MAX_BODY_BYTES // 2**20} MiB", most)
    if error := _error(body):
        return _mistaken(body, error)
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "body"
        return _unread(body, f"the endpoint's answer is no chat completion ({field}: {first['msg'][:100]})", most)
    return _reply(completion.choices[0], completion.usage or Usage(), most, limit)


def _error(body: bytes) -> Any:
    """Error in a body, or in its first choice; nothing if there is none."""
    try:
        found = _Mistaken.model_validate_json(body)
    except ValidationError:
        return None
    first = found.choices[0] if isinstance(found.choices, list) and found.choices else None
    return found.error or (first.get("error") if isinstance(first, dict) else None)


def _mistaken(body: bytes, error: object) -> Failure:
    status, used = status_in(error), usage_of(body)
    fault = f"the endpoint answers with an error ({words_of(error)})"
    return Failure(
        fault,
        after(status, error),
        dead=status >= 500,
        prompt_tokens=used.prompt_tokens or 0,
        answer_tokens=used.completion_tokens or 0,
    )


def _unread(body: bytes, fault: str, most: int) -> Failure:
    used = usage_of(body)
    tokens = used.completion_tokens or min(estimated(body), most)
    return Failure(fault, After.NEXT, prompt_tokens=used.prompt_tokens or 0, answer_tokens=tokens, unread=True)


def _reply(choice: _Choice, used: Usage, most: int, limit: str) -> Reply | Failure:
    message, end = choice.message, (choice.finish_reason or "").lower()
    text = without_thinking(message.text, thinking=False).text.strip()
    written = used.completion_tokens or estimated(f"{message.refused}{message.thought}{message.text}")
    prompt, cut = used.prompt_tokens or 0, end in CUT
    thought = bool(message.thought or message.text.strip())
    if end in INTERRUPTED:
        fault = f"the endpoint did not finish the answer (finish_reason: {end})"
        return Failure(fault, After.AGAIN, prompt_tokens=prompt, answer_tokens=used.completion_tokens or 0)
    unsaid = _unsaid(end, thought, most, limit) if not text and (thought or not cut) else ""
    if fault := _withheld(message, end) or unsaid:
        again = After.AGAIN if not (message.refused or end in (*CUT, *CALLS, *FILTERED)) else After.NEXT
        return Failure(fault, again, prompt_tokens=prompt, answer_tokens=written, silent=True)
    return Reply(text, not cut, prompt, written)


def _withheld(message: _Message, end: str) -> str:
    """Why an answer is withheld; empty if it is not."""
    if message.refused:
        return f"the model refuses to answer: {message.refused}"
    return "the endpoint filtered the answer" if end in FILTERED else ""


def _unsaid(end: str, thought: bool, most: int, limit: str) -> str:
    """Why an answer is empty."""
    if end in CUT:
        return f"the model's thinking used up {limit}={most}: raise it, or let it think less"
    return f"the endpoint's answer has no text{', only thinking' if thought else ''}"


def _is_said(part: _AnswerPart | str) -> bool:
    return isinstance(part, str) or part.type in ("text", "output_text")


def usage_of(body: bytes) -> Usage:
    """Tokens that a body reports, though the rest of it may be no completion."""
    try:
        return _Body.model_validate_json(body).usage or Usage()
    except ValidationError:
        return Usage()
