"""Formats of answers: the sentence of the prompt that asks for one, and an expert's answer in it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from coevo.records.demonstration import Answer
from coevo.records.inert import encodable


@dataclass(frozen=True, slots=True)
class Form:
    """Format of an answer.

    Attributes:
        request: sentence of the system message that asks for it.
        action: template of the action, with ``{action}``.
        thought: template of the text before it, with ``{thought}``.
    """

    request: str
    action: str
    thought: str = "{thought}\n"

    def write(self, answer: Answer) -> str:
        """An expert's answer in this format."""
        return f"{self.thought}{self.action}".format(thought=answer.thought, action=answer.action)

    def without_thought(self, action: str) -> str:
        """An answer in this format that consists of its action."""
        return self.action.format(action=action)


_LABEL = Form("Answer with a line 'Thought: ...' and a line 'Action: ...'.", "Action: {action}", "Thought: {thought}\n")

FORMS: Mapping[str, Form] = {
    "auto": _LABEL,
    "label": _LABEL,
    "tag": Form("Think first, then write the action as <action>...</action>.", "<action>{action}</action>"),
    "call": Form("Answer with one tool call.", "<tool_call>\n{action}\n</tool_call>"),
    "fence": Form("Think first, then write the action in one fenced code block.", "```\n{action}\n```"),
    "plain": Form("Answer with the action alone, and with nothing else.", "{action}", ""),
}
"""Formats by the name of their parser (``context.parser``)."""

WORDS = Form("", "act {action}", "think {thought} ")
"""Format of the ``words`` style, whose prompts ask for nothing."""


def call_text(name: str, arguments: Mapping[str, object]) -> str:
    """A tool call as an environment gets it: one line of JSON with ``name`` and ``arguments``.

    Halves of surrogate pairs, which have no encoding, become question marks.

    Raises:
        TypeError: an argument holds a value that JSON lacks.
        ValueError: an argument holds a number that JSON lacks.
    """
    return encodable(json.dumps({"name": name, "arguments": dict(arguments)}, ensure_ascii=False, allow_nan=False))
