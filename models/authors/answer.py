"""Body of an endpoint's answer: a chat completion, of which nothing is believed unchecked."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from coevo.models.answers.thinking import without_thinking
from coevo.models.authors.author import failed
from coevo.models.authors.failure import After, Failure, after, status_in, words_of
from coevo.models.authors.usage import Usage, usage_of
from coevo.records.writing import Reply, estimated

LARGEST = 4 * 2**20
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


def reply_of(body: bytes, most: int = LARGEST) -> Reply:
    """Read a body as ``read``; a failure is a reply with a fault."""
    found = read(body, most)
    return found if isinstance(found, Reply) else failed(found.fault, found.prompt_tokens, found.answer_tokens)


def read(body: bytes, most: int = LARGEST) -> Reply | Failure:
    """Read a body as a reply, without its thinking; as a failure if it has no answer, though it arrived with 200.

    The tokens of an answer are estimated if the body reports none: a refusal is not free either, but an error is. Those
    of the question are then 0.

    Args:
        body: what the endpoint sent.
        most: maximum tokens of an answer.
    """
    if len(body) > LARGEST:
        return _unread(body, f"the endpoint's answer is longer than {LARGEST // 2**20} MiB", most)
    if error := _error(body):
        return _mistaken(body, error)
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "body"
        return _unread(body, f"the endpoint's answer is no chat completion ({place}: {first['msg'][:100]})", most)
    return _reply(completion.choices[0], completion.usage or Usage(), most)


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
    return Failure(fault, After.NEXT, prompt_tokens=used.prompt_tokens or 0, answer_tokens=tokens)


def _reply(choice: _Choice, used: Usage, most: int) -> Reply | Failure:
    message, end = choice.message, (choice.finish_reason or "").lower()
    text = without_thinking(message.text, thinking=False).text.strip()
    written = used.completion_tokens or estimated(f"{message.refused}{message.thought}{message.text}")
    prompt, cut = used.prompt_tokens or 0, end in CUT
    thought = bool(message.thought or message.text.strip())
    if end in INTERRUPTED:
        fault = f"the endpoint did not finish the answer (finish_reason: {end})"
        return Failure(fault, After.AGAIN, prompt_tokens=prompt, answer_tokens=used.completion_tokens or 0)
    if fault := _withheld(message, end) or (_unsaid(end, thought, most) if not text and (thought or not cut) else ""):
        again = After.AGAIN if not (message.refused or end in (*CUT, *CALLS, *FILTERED)) else After.NEXT
        return Failure(fault, again, prompt_tokens=prompt, answer_tokens=written)
    return Reply(text, not cut, prompt, written)


def _withheld(message: _Message, end: str) -> str:
    """Why an answer is withheld; empty if it is not."""
    if message.refused:
        return f"the model refuses to answer: {message.refused}"
    return "the endpoint filtered the answer" if end in FILTERED else ""


def _unsaid(end: str, thought: bool, most: int) -> str:
    """Why an answer is empty."""
    if end in CUT:
        return f"the model's thinking used up bank.writer.author.max_new_tokens={most}: raise it, or let it think less"
    return f"the endpoint's answer has no text{', only thinking' if thought else ''}"


def _is_said(part: _AnswerPart | str) -> bool:
    return isinstance(part, str) or part.type in ("text", "output_text")
