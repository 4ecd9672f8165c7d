"""Body of an endpoint's answer: a chat completion, of which nothing is believed unchecked."""

import re
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import from_json

from coevo.models.answers.thinking import without_thinking
from coevo.models.writer_models.failure import After, Failure, after
from coevo.records.stated_error import BROKEN, error_in, status_in, words_of
from coevo.records.stated_pause import pause_in
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
EVENTS = 8
"""Most events of a stream in which an error is looked for."""
_COMMENTS = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:\s*+:[^\n]*+\n)*+")
"""Mark of the encoding, and comments that keep a connection alive, before a body."""


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


def read(body: bytes, most: int = MAX_BODY_BYTES, limit: str = LIMIT, pause: float = 0.0) -> Reply | Failure:
    """Read a body as a reply, without its thinking; as a failure if it has no answer, though it arrived with 200.

    The tokens of an answer are estimated if the body reports none: a refusal is not free either, but an error is. Those
    of the question are then 0.

    Args:
        body: what the endpoint sent.
        most: maximum tokens of an answer.
        limit: setting of this maximum.
        pause: seconds that its headers ask for.
    """
    if len(body) > MAX_BODY_BYTES:
        return _unread(body, f"the endpoint's answer is longer than {MAX_BODY_BYTES // 2**20} MiB", most)
    body = _COMMENTS.sub(b"", body)
    if error := _error(body):
        return _mistaken(body, error, pause or pause_in(error))
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "body"
        said = _prose(body) or f"{field}: {first['msg'][:100]}"
        found = _unread(body, f"the endpoint's answer is no chat completion ({said})", most)
        return replace(found, after=After.AGAIN) if _is_cut(error) else found
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


def _is_cut(error: ValidationError) -> bool:
    """Report whether a body ends before its JSON does, as it does when a connection is lost."""
    first = error.errors(include_url=False, include_input=False)[0]
    return first["type"] == "json_invalid" and "EOF" in first["msg"]


def _mistaken(body: bytes, error: object, pause: float) -> Failure:
    status, used = status_in(error), usage_of(body)
    fault = f"the endpoint answers with an error ({words_of(error)})"
    return Failure(
        fault,
        after(status, error, pause),
        pause,
        dead=status >= BROKEN,
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
