"""Body of an endpoint's answer: a chat completion, of which nothing is believed unchecked."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from coevo.models.answers.thinking import without_thinking
from coevo.models.authors.base import failed
from coevo.models.authors.usage import Usage, estimated, usage_of
from coevo.records.writing import Reply

LARGEST = 4 * 2**20
"""Maximum bytes of a body."""


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


def _first(choices: Any) -> Any:
    """The choice that is read: a flaw in another one loses nothing."""
    return choices[:1] if isinstance(choices, list) else choices


class _Completion(BaseModel):
    choices: Annotated[list[_Choice], BeforeValidator(_first), Field(min_length=1)]
    usage: Usage | None = None


def reply_of(body: bytes, most: int = LARGEST) -> Reply:
    """Read a body as a reply, without its thinking; one that cannot be read is a reply with a fault.

    The tokens of an answer are estimated if the body reports none: a refusal is not free either. Those of the question
    are then 0.

    Args:
        body: what the endpoint sent.
        most: maximum tokens that are estimated for a body that cannot be read.
    """
    if len(body) > LARGEST:
        return _unread(body, f"the endpoint's answer is longer than {LARGEST // 2**20} MiB", most)
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "body"
        return _unread(body, f"the endpoint's answer is no chat completion ({place}: {first['msg'][:100]})", most)
    return _reply(completion.choices[0], completion.usage or Usage())


def _unread(body: bytes, fault: str, most: int) -> Reply:
    used = usage_of(body)
    return failed(fault, used.prompt_tokens or 0, used.completion_tokens or min(estimated(body), most))


def _reply(choice: _Choice, used: Usage) -> Reply:
    message, finished = choice.message, choice.finish_reason != "length"
    said = f"{message.refusal or ''}{message.content or ''}"
    tokens = (used.prompt_tokens or 0, used.completion_tokens or estimated(said))
    if message.refusal:
        return failed(f"the model refuses to answer: {message.refusal}", *tokens)
    if choice.finish_reason == "content_filter":
        return failed("the endpoint filtered the answer", *tokens)
    if message.content is None and finished:
        return failed("the endpoint's answer has no text", *tokens)
    text = without_thinking(message.content or "", thinking=False).text.strip()
    return Reply(text, finished, *tokens)
