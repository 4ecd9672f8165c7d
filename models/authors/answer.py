"""Body of an endpoint's answer: a chat completion, of which nothing is believed unchecked."""

from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from coevo.models.answers.thinking import without_thinking
from coevo.models.authors.base import failed
from coevo.records.writing import Reply

LARGEST = 4 * 2**20
"""Maximum bytes of a body."""
Count = Annotated[int, Field(ge=0, le=2**31)]


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: Count = 0
    completion_tokens: Count = 0


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


def reply_of(body: bytes) -> Reply:
    """Read a body as a reply, without its thinking; one that cannot be read is a reply with a fault."""
    if len(body) > LARGEST:
        return failed(f"the endpoint's answer is longer than {LARGEST // 2**20} MiB")
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "body"
        return failed(f"the endpoint's answer is no chat completion ({place}: {first['msg'][:100]})")
    used = completion.usage or _Usage()
    return _reply(completion.choices[0], used.prompt_tokens, used.completion_tokens)


def _reply(choice: _Choice, prompt_tokens: int, answer_tokens: int) -> Reply:
    message, finished = choice.message, choice.finish_reason != "length"
    if message.refusal:
        return failed(f"the model refuses to answer: {message.refusal}", prompt_tokens, answer_tokens)
    if choice.finish_reason == "content_filter":
        return failed("the endpoint filtered the answer", prompt_tokens, answer_tokens)
    if message.content is None and finished:
        return failed("the endpoint's answer has no text", prompt_tokens, answer_tokens)
    text = without_thinking(message.content or "", thinking=False).text.strip()
    return Reply(text, finished, prompt_tokens, answer_tokens)
