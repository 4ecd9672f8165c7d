"""A model at an endpoint that plays the user of a conversation, with tools of its own where the domain has some."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from coevo.envs.rows.endpoint_requests import MAX_RESPONSE_BYTES, CompletionsEndpoint, said
from coevo.records.draws import Key, extend, seed_of
from coevo.utilities.errors import CoevoError

STOPS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
"""Words with which the user ends the conversation."""
MAX_CALLS_AT_ONCE = 8
"""Most calls of tools in one message of the user."""
CallUserTool = Callable[[str, str, Mapping[str, Any]], str]
"""Result of a call: its id, the tool and its arguments."""


class UserBudgetError(Exception):
    """The episode has used all requests to the user's model."""


class _CalledFunction(BaseModel):
    name: str = Field(max_length=200)
    arguments: str = Field(max_length=MAX_RESPONSE_BYTES)


class _UserCall(BaseModel):
    id: str = Field(max_length=200)
    function: _CalledFunction


class _UserMessage(BaseModel):
    content: Annotated[str | None, BeforeValidator(said)] = None
    tool_calls: list[_UserCall] | None = Field(default=None, max_length=MAX_CALLS_AT_ONCE)


class _UserChoice(BaseModel):
    message: _UserMessage


class _Usage(BaseModel):
    total_tokens: int = Field(default=0, ge=0)


class _UserReply(BaseModel):
    """The part of a response that is read; other fields are ignored."""

    choices: list[_UserChoice] = Field(min_length=1, max_length=1)
    usage: _Usage | None = None


@dataclass
class UserModel:
    """The user of one episode.

    Attributes:
        settings: values of ``UserModelConfig``.
        endpoint: where the model is.
        instructions: its rules and its scenario.
        tools: its tools, as OpenAI's interface wraps them.
        draws: key of its seeds.
        calls: requests so far.
        tokens: tokens that the endpoint counted so far.
    """

    settings: Mapping[str, Any]
    endpoint: CompletionsEndpoint
    instructions: str
    tools: Sequence[Mapping[str, Any]]
    draws: Key
    calls: int = 0
    tokens: int = 0
    _said: list[dict[str, Any]] = field(default_factory=list)

    def reply(self, message: str, call: CallUserTool) -> str:
        """The user's answer to a message of the agent; calls of tools before it are made by ``call``.

        Raises:
            UserBudgetError: no request is left.
            CoevoError: the endpoint does not reply, or with something else.
        """
        self._said.append({"role": "user", "content": message})
        while True:
            answered = self._asked()
            calls = answered.tool_calls or []
            if not calls:
                if not answered.content:
                    raise CoevoError("the user's model replied with an empty message: name another one in env.user")
                self._said.append({"role": "assistant", "content": answered.content})
                return answered.content
            written = [{"id": each.id, "type": "function", "function": each.function.model_dump()} for each in calls]
            self._said.append({"role": "assistant", "content": None, "tool_calls": written})
            for each in calls:
                result = call(each.id, each.function.name, _arguments(each.function.arguments))
                self._said.append({"role": "tool", "tool_call_id": each.id, "content": result})

    def _asked(self) -> _UserMessage:
        left = int(self.settings["calls"]) - self.calls
        if left <= 0:
            raise UserBudgetError
        drawn = seed_of(extend(self.draws, "user", self.settings["seed"], self.calls)) >> 33
        body = {
            "model": self.settings["model"],
            "messages": [{"role": "system", "content": self.instructions}, *self._said],
            "temperature": self.settings["temperature"],
            "max_tokens": self.settings["max_tokens"],
            "seed": drawn,
            **({"tools": list(self.tools)} if self.tools else {}),
        }
        content, sent = self.endpoint.asked(body, left - 1)
        self.calls += sent
        try:
            reply = _UserReply.model_validate_json(content)
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(map(str, problem["loc"])) or "response"
            raise CoevoError(
                f"the reply of the user's model is no chat completion ({place[:60]}: {problem['msg'][:100]})"
            ) from None
        self.tokens += reply.usage.total_tokens if reply.usage else 0
        return reply.choices[0].message


def _arguments(text: str) -> Mapping[str, Any]:
    """Arguments of a call; none where they are no object of JSON, which the tool then refuses."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def is_end(message: str) -> bool:
    """True if the user ends the conversation with this message."""
    return any(stop in message for stop in STOPS)
