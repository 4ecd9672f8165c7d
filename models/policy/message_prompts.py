"""Token ids of prompts for lists of messages that a client sends, and the message in an answer.

A policy's chat template is known by its layouts (``layout``), so that the contents of messages cannot act as control
tokens, and a template is rendered only for a new sequence of roles. An answer is never encoded again: the prompt after
it consists of the tokens before it, its own, and ``continued``.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from secrets import token_hex
from threading import RLock
from typing import Any

from coevo.models.answers.call_tools import answer_of
from coevo.models.answers.calls import calls
from coevo.models.answers.forms import FORMS
from coevo.models.answers.incremental import IncrementalReader
from coevo.models.answers.thinking import opens_thinking, without_thinking
from coevo.models.policy.context import TOOLS
from coevo.models.policy.encoding import Piece, TemplateEncoder
from coevo.models.policy.layout import Conversation, Layout
from coevo.models.policy.template import render
from coevo.records.answer_faults import Fault
from coevo.records.demonstration import Answer
from coevo.records.message import Message, MessageCall
from coevo.utilities.errors import CoevoError

SEQUENCES = 256
"""Maximum number of sequences of roles whose layouts are kept."""


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """The message in an answer.

    Attributes:
        message: text and calls.
        reasoning: thinking before the text, which is no part of the message.
        fault: why the answer could not be read, and its message is what is left of it; empty if it could.
    """

    message: Message
    reasoning: str
    fault: str = ""


class MessagePrompts:
    """Writer of prompts from messages for one tokenizer.

    Args:
        tokenizer: tokenizer with a chat template.
        options: values that the template may use, such as ``enable_thinking``.
    """

    def __init__(self, tokenizer: Any, options: Mapping[str, Any]) -> None:
        self._tokenizer, self._options = tokenizer, options
        self._encoder = TemplateEncoder(tokenizer)
        self._rendering = RLock()
        self._written: set[tuple[bool, tuple[str, ...], str]] = set()
        self._opening = lru_cache(maxsize=SEQUENCES)(self._opening_of)
        self._following = lru_cache(maxsize=SEQUENCES)(self._following_of)
        self._continues = lru_cache(maxsize=SEQUENCES)(self._continues_of)
        self._declares = lru_cache(maxsize=SEQUENCES)(self._declares_of)
        self._thinks = lru_cache(maxsize=SEQUENCES)(self._thinks_of)

    def opening(self, messages: Sequence[Message], tools: str) -> tuple[int, ...]:
        """Token ids of a whole prompt, up to the beginning of the answer.

        Args:
            messages: all messages, of which the first may be a system's.
            tools: JSON list of the tools that the prompt declares, as the OpenAI interface writes them.

        Raises:
            CoevoError: the template cannot write these messages, or the tools hold a control token.
        """
        texts = self._texts(messages)
        if not self._declares(tools):
            texts[0] = f"{texts[0]}\n\n{TOOLS}\n{tools}".strip()
        piece = self._opening(roles_of(messages), tools)
        self._note(False, messages, tools)
        return self._encoder.ids(piece.parts(self._encoder, texts))

    def knows(self, continued: bool, messages: Sequence[Message], tools: str) -> bool:
        """Report whether messages of these roles were written before, so that they take no rendering.

        Args:
            continued: True if they follow an answer.
            messages: the messages.
            tools: their tools.
        """
        return (continued, roles_of(messages), tools) in self._written

    def continues(self, tools: str) -> bool:
        """Report whether the template can write a conversation; otherwise each prompt is an ``opening``."""
        return self._continues(tools)

    def continued(self, answer: Sequence[int], messages: Sequence[Message], tools: str) -> tuple[int, ...]:
        """Token ids from the end of an answer to the beginning of the next.

        Args:
            answer: drawn token ids of the answer, which the result does not repeat.
            messages: messages behind it.
            tools: tools of the prompt before it.

        Raises:
            CoevoError: the template cannot write these messages behind an answer.
        """
        piece = self._following(roles_of(messages), tools).following
        self._note(True, messages, tools)
        ids = self._encoder.ids(piece.parts(self._encoder, self._texts(messages)))
        return ids[1:] if tuple(answer[-1:]) == ids[:1] else ids

    def read(self, text: str, tools: str, called: bool = True) -> ReadAnswer:
        """The message in an answer.

        Calls are read only if each of them fits a tool; otherwise the answer is text, with a fault.

        Args:
            text: the answer, as decoded.
            tools: tools that its prompt declares.
            called: False if the client wants no calls.
        """
        outside = without_thinking(text, self._thinks(tools))
        spoken = outside.text
        reasoning = text[: len(text) - len(spoken)].strip() if text.endswith(spoken) else ""
        found = self._calls(spoken, json.loads(tools)) if called else ""
        if not isinstance(found, str):
            return ReadAnswer(Message.answer(spoken[: found[0]], found[1]), reasoning)
        silent = Fault.CUT_OFF_THINKING if outside.thinking else "" if spoken.strip() else Fault.NO_ACTION
        return ReadAnswer(Message.answer(spoken), reasoning, found or silent)

    def reader(self, tools: str, called: bool, stops: Sequence[str]) -> IncrementalReader:
        """Reader of an answer that is not yet whole; ``tools`` and ``called`` as for ``read``."""
        return IncrementalReader(self._thinks(tools), called and tools != "[]", stops)

    def _calls(self, text: str, tools: Sequence[Mapping[str, Any]]) -> tuple[int, tuple[MessageCall, ...]] | str:
        """Beginning of the first call, and all calls; the fault of the first that fits no tool, empty without calls."""
        found = calls(text) if tools else []
        if not found:
            return ""
        unread = Answer("", "", Fault.MALFORMED_CALL)
        answers = [unread if each.call is None else answer_of(each.call, tools, "") for each in found]
        if faults := [answer.fault for answer in answers if not answer.action]:
            return str(faults[0])
        read = [json.loads(answer.action) for answer in answers]
        arguments = [json.dumps(each["arguments"], ensure_ascii=False) for each in read]
        made = [
            MessageCall.of(each["name"], text, f"call_{token_hex(12)}")
            for each, text in zip(read, arguments, strict=True)
        ]
        return found[0].start, tuple(made)

    def _texts(self, messages: Sequence[Message]) -> list[str]:
        """Contents of messages; calls of answers that the policy did not draw are text in the common form."""
        return [
            "\n".join(filter(None, (message.text, *map(_written, message.calls)))) if message.calls else message.text
            for message in messages
        ]

    def _layout(self, tools: str) -> Layout:
        return Layout(self._tokenizer, self._encoder, self._options, json.loads(tools) if self._declares(tools) else ())

    def _note(self, continued: bool, messages: Sequence[Message], tools: str) -> None:
        if len(self._written) >= SEQUENCES:
            self._written.clear()
        self._written.add((continued, roles_of(messages), tools))

    def _opening_of(self, roles: tuple[str, ...], tools: str) -> Piece:
        with self._rendering:
            try:
                return self._layout(tools).prompt(roles)
            except CoevoError:
                if "tool" not in roles:
                    raise
            return self._layout(tools).prompt(["user" if role == "tool" else role for role in roles])

    def _following_of(self, roles: tuple[str, ...], tools: str) -> Conversation:
        with self._rendering:
            return self._layout(tools).following(roles)

    def _continues_of(self, tools: str) -> bool:
        try:
            self._following(("user",), tools)
        except CoevoError:
            return False
        return True

    def _declares_of(self, tools: str) -> bool:
        """True if the template writes the tools."""
        if tools == "[]":
            return True
        bare, full = (self._rendered(each) for each in ((), json.loads(tools)))
        return bare != full

    def _thinks_of(self, tools: str) -> bool:
        """True if prompts end within thinking."""
        return opens_thinking(self._rendered(json.loads(tools)))

    def _rendered(self, tools: Sequence[Mapping[str, Any]]) -> str:
        return render(self._tokenizer, [{"role": "user", "content": ""}], self._options, tools)


def roles_of(messages: Sequence[Message]) -> tuple[str, ...]:
    """Roles of messages."""
    return tuple(message.role for message in messages)


def check_messages(messages: Sequence[Message]) -> None:
    """Check the order of a client's messages.

    Raises:
        CoevoError: the list cannot end in an answer.
    """
    if not any(message.role in ("user", "tool") for message in messages):
        raise CoevoError("messages: none is a user's: send at least one")
    if messages[-1].role == "assistant":
        raise CoevoError("messages: the last one is the assistant's: end with a user's or a tool's")


def _written(call: MessageCall) -> str:
    name = json.dumps(call.name, ensure_ascii=False)
    return FORMS["call"].without_thought(f'{{"name": {name}, "arguments": {call.arguments}}}')
