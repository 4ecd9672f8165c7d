"""Body of an endpoint's answer: a chat completion, of which nothing is believed unchecked."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Annotated, Any

from openai import APIStatusError
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import from_json

from coevo.models.answers.thinking import without_thinking
from coevo.records.stated_error import BROKEN, error_in, names_of, status_in, words_of
from coevo.records.writing import Reply, estimated

MAX_BODY_BYTES = 4 * 2**20
"""Maximum bytes of a body."""
CUT = (
    "length",
    "max_tokens",
    "max_output_tokens",
    "max_completion_tokens",
    "token_limit",
    "error_limit",
    "context_window",
)
"""Parts of the names of ends of an answer at its limit of tokens."""
FILTERED = (
    "filter",
    "safety",
    "sensitive",
    "recitation",
    "prohibited",
    "blocklist",
    "blocked",
    "refus",
    "guardrail",
    "moderation",
    "policy",
    "toxic",
    "spii",
)
"""Parts of the names of ends of an answer that a filter withheld."""
INTERRUPTED = (
    "error", "abort", "cancel", "fail", "interrupt", "timeout", "overload", "insufficient_system_resource"
)  # fmt: skip
"""Parts of the names of ends of an answer that the endpoint could not finish."""
CALLS = ("tool_call", "function_call", "tool_use")
"""Parts of the names of ends of an answer that calls a tool, though none was offered."""
LIMIT = "bank.writer.model.max_new_tokens"
"""Setting of a writer model's longest answer."""
Count = Annotated[int, Field(ge=0, le=2**31)]
BUSY = (503, 529)
"""Status of a server with too much to do, which may ask to wait."""
TRANSIENT = (408, 409, 425)
"""Status below ``BROKEN`` of a request that may be sent again."""
PERMANENT = (401, 402, 403, 404, 405, 406, 407, 410, 411, 415, 426, 451, 501, 505, 511)
"""Status that every other question would have too."""
EVENTS = 8
"""Most events of a stream in which an error is looked for."""
_DURATION = re.compile(r"(?:(\d{1,6})h)?\s*(?:(\d{1,6})m(?:in)?)?\s*(?:(\d{1,6}(?:\.\d{0,9})?)\s?s(?:ec(?:ond)?s?)?)?")
_COMMENTS = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:\s*+:[^\n]*+\n)*+")
"""Mark of the encoding, and comments that keep a connection alive, before a body."""
REFUSED = (400, 422)
"""Status of a request that is refused for what it holds: this question, or a setting that all have."""
MAX_PAUSE_S = 86_400.0
"""Most seconds that an endpoint is believed to ask for."""
_QUOTA = re.compile(
    r"billing|payment_required|insufficient_?(?:quota|balance|credits|funds)|exceeded_current_quota|arrearage|overdue",
    re.IGNORECASE,
)
_OF_ALL = re.compile(
    r"model_not_found|(?:unsupported|unknown|unrecognized)_(?:parameter|value|argument)|extra_forbidden|invalid_api_key"
    r"|\b(?:unsupported|unknown|unrecognized) (?:request )?(?:parameter|argument|field|value:)"
    r"|\bapi.?key (?:is |was )?(?:not valid|invalid|expired)|\b(?:invalid|incorrect|missing) api.?key"
    r"|\b(?:credit )?balance is (?:too low|insufficient)|extra inputs are not permitted"
    r"|\b(?:no such|unknown|invalid|unsupported|no) model\b"
    r"|\bmodel\b.{0,120}?\b(?:not found|(?:does|do) not exist|doesn't exist|is not a valid|is not available)",
    re.IGNORECASE | re.DOTALL,
)


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
    if _QUOTA.search(" ".join(names_of(error))):
        return After.STOP
    if status == 429 or (status in BUSY and pause):
        return After.WAIT
    if status in PERMANENT or status // 100 == 3 or (status in REFUSED and _OF_ALL.search(said)):
        return After.STOP
    return After.AGAIN if status >= BROKEN or status in TRANSIENT else After.NEXT


def message(error: APIStatusError) -> str:
    """Reason of a status."""
    return words_of(error.body) or str(error.response.reason_phrase)


def pause_of(headers: Mapping[str, str]) -> float:
    """Seconds that an endpoint asks for: a number, a duration as ``1m30s``, or a date; 0 if it does not say."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = headers.get(name, "").strip()
        try:
            seconds = _duration(said) / unit
        except ValueError:
            seconds = _until(said, headers.get("date", ""))
        if math.isfinite(seconds) and seconds > 0:
            return min(seconds, MAX_PAUSE_S)
    return 0.0


def _duration(said: str) -> float:
    """Seconds, or another unit, that a header states, whose lines may be joined by commas; ``ValueError`` if none."""
    first = said.partition(",")[0].strip().lower()
    parts = _DURATION.fullmatch(first)
    if not parts or not first:
        return float(first)
    return sum(float(part or 0) * size for part, size in zip(parts.groups(), (3600, 60, 1), strict=True))


def _until(date: str, now: str) -> float:
    """Seconds from the endpoint's own time to a date, as the clocks of two machines differ; else from this one's."""
    try:
        then = parsedate_to_datetime(date)
        since = parsedate_to_datetime(now) if now else datetime.now(then.tzinfo)
        return (then - since).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return 0.0


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
    content: str | _AnswerPart | list[_AnswerPart | str | None] | None = None
    refusal: Any = None
    tool_calls: Any = None
    reasoning: Any = None
    reasoning_content: Any = None
    reasoning_details: Any = None
    thinking: Any = None
    thinking_blocks: Any = None

    @property
    def parts(self) -> list["_AnswerPart | str"]:
        """Parts of the content; text is one part."""
        found = self.content if isinstance(self.content, list) else [self.content]
        return [part for part in found if part is not None]

    @property
    def text(self) -> str:
        """The text, without parts of thinking."""
        texts = [part if isinstance(part, str) else part.text for part in self.parts if _is_said(part)]
        texts = [text.get("value") if isinstance(text, dict) else text for text in texts]
        return "".join(text for text in texts if isinstance(text, str))

    @property
    def refused(self) -> str:
        """Reason of a model that refuses to answer; empty if it does not."""
        said = [part.refusal for part in self.parts if isinstance(part, _AnswerPart)]
        whole = words_of(self.refusal) if self.refusal else ""
        return whole or "".join(each for each in said if isinstance(each, str))

    @property
    def thought(self) -> str:
        """Thinking beside the text; empty if there is none."""
        thought = self.reasoning_content or self.reasoning or self.thinking
        thought = thought or self.reasoning_details or self.thinking_blocks
        inside = [part.model_extra for part in self.parts if isinstance(part, _AnswerPart) and "thinking" in part.type]
        return f"{thought or inside or ''}"


def _end_of(named: Any) -> str:
    """Name of an end, as ``content_filter``, however it is written; empty if it has none."""
    found = named.get("type") if isinstance(named, dict) else named
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]+", "_", found) if isinstance(found, str) else ""
    return words.lower()


class _Choice(BaseModel):
    message: Annotated[_Message, BeforeValidator(lambda told: {} if told is None else told)]
    finish_reason: Annotated[str, BeforeValidator(_end_of)] = ""

    @model_validator(mode="before")
    @classmethod
    def _message(cls, given: Any) -> Any:
        """A choice that says how it ended needs no message: a filter leaves none."""
        ended = isinstance(given, dict) and given.get("finish_reason") and not {"text", "delta"} & {*given}
        return {"message": None, **given} if ended else given

    def ends(self, kinds: tuple[str, ...]) -> bool:
        """Report whether it ended in a way of a kind."""
        return any(kind in self.finish_reason for kind in kinds)


def _first(choices: Any) -> Any:
    """The choice that is read: a flaw in another one loses nothing."""
    return choices[:1] if isinstance(choices, list) else choices


class _Completion(BaseModel):
    choices: Annotated[list[_Choice], BeforeValidator(_first), Field(min_length=1)]
    usage: Usage | None = None


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
    body = _COMMENTS.sub(b"", body)
    if error := _error(body):
        return _mistaken(body, error)
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "body"
        said = _prose(body) or f"{field}: {first['msg'][:100]}"
        return _unread(body, f"the endpoint's answer is no chat completion ({said})", most)
    return _reply(completion.choices[0], completion.usage or Usage(), most, limit)


def _prose(body: bytes) -> str:
    """Beginning of a body that is a text, as a gateway writes it; empty for JSON, and for what is no text."""
    said = " ".join(body[:400].decode(errors="replace").split())[:100]
    return said if said.isprintable() and said[:1] not in ("", "{", "[") and "\ufffd" not in said else ""


def _error(body: bytes) -> Any:
    """Error in a body, or in an event of a stream, which nobody asked for; nothing if there is none."""
    events = [line.removeprefix(b"data:") for line in body.splitlines() if line.startswith(b"data:")]
    for said in [body, *events[:EVENTS]]:
        try:
            error = error_in(from_json(said))
        except ValueError:
            continue
        if error:
            return error
    return None


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
    message, filtered, cut = choice.message, choice.ends(FILTERED), choice.ends(CUT)
    text = without_thinking(message.text, thinking=False).text.strip()
    written = used.completion_tokens or estimated(f"{message.refused}{message.thought}{message.text}")
    prompt, called = used.prompt_tokens or 0, choice.ends(CALLS) or bool(message.tool_calls)
    # A model that hides its thinking reports its tokens all the same.
    thought = bool(message.thought or message.text.strip()) or (cut and bool(used.completion_tokens))
    if choice.ends(INTERRUPTED) and not (filtered or cut):
        fault = f"the endpoint did not finish the answer (finish_reason: {choice.finish_reason[:60]})"
        return Failure(fault, After.AGAIN, prompt_tokens=prompt, answer_tokens=used.completion_tokens or 0)
    fault = f"the model refuses to answer: {message.refused}" if message.refused else ""
    fault = fault or ("the endpoint filtered the answer" if filtered else "")
    if unsaid := fault or ("" if text else _unsaid(cut, thought, most, limit)):
        again = After.NEXT if fault or cut or called else After.AGAIN
        return Failure(unsaid, again, prompt_tokens=prompt, answer_tokens=written, silent=True)
    return Reply(text, not cut, prompt, written)


def _unsaid(cut: bool, thought: bool, most: int, limit: str) -> str:
    """Why an answer is empty."""
    if cut and thought:
        return f"the model's thinking used up {limit}={most}: raise it, or let it think less"
    return f"the endpoint's answer has no text{', only thinking' if thought else ''}"


def _is_said(part: _AnswerPart | str) -> bool:
    return isinstance(part, str) or part.type.lower() in ("text", "output_text")


def usage_of(body: bytes) -> Usage:
    """Tokens that a body reports, though the rest of it may be no completion."""
    try:
        return _Body.model_validate_json(body).usage or Usage()
    except ValidationError:
        return Usage()
