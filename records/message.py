"""Messages of a conversation between a client and a policy, whatever the dialect that they arrived in."""

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from coevo.records.inert import encodable

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class MessageCall:
    """Call of a tool in an answer.

    Attributes:
        name: name of the tool.
        arguments: JSON object with sorted keys, so that equal calls are equal texts; other text if it is no JSON.
        id: name by which the tool's result refers to it; two calls are equal whatever their ids.
    """

    name: str
    arguments: str
    id: str = field(default="", compare=False)

    @classmethod
    def of(cls, name: str, arguments: str, call_id: str = "") -> "MessageCall":
        """A call whose arguments may be JSON in any order and with any blanks, and may escape halves of characters."""
        with suppress(ValueError, RecursionError):
            # Names of fields may be others, in another order, without halves of characters.
            arguments = _sorted(encodable(_sorted(arguments)))
        return cls(encodable(name), encodable(arguments), call_id)


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        role: its author.
        text: its text; that of an assistant's without blanks at its ends, which clients drop.
        calls: tools that an assistant's message calls.
    """

    role: Role
    text: str
    calls: tuple[MessageCall, ...] = ()

    @classmethod
    def answer(cls, text: str, calls: tuple[MessageCall, ...] = ()) -> "Message":
        """An assistant's message."""
        return cls("assistant", text.strip(), calls)


def _sorted(text: str) -> str:
    return json.dumps(json.loads(text), ensure_ascii=False, sort_keys=True)
