"""Formats of answers: the text of the prompt that asks for one, and an expert's answer in it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from coevo.records.answer_form import (
    AnswerForm,
    BlockForm,
    CallForm,
    FenceForm,
    LineForm,
    NamedAction,
    NamedForm,
    OwnForm,
    TagForm,
    WholeForm,
)
from coevo.records.demonstration import Answer
from coevo.records.inert import encodable

_TICKS = re.compile(r"`{3,}")


@dataclass(frozen=True, slots=True)
class Form:
    """Format of an answer.

    Attributes:
        request: text of the system message that asks for it.
        action: template of the action, with ``{action}``; of an action without a payload where it has names.
        thought: template of the text before it, with ``{thought}``.
        names: template of each action with a name, by the name in lower case, with ``{name}``, ``{payload}`` and
            ``{fence}``.
    """

    request: str
    action: str
    thought: str = "{thought}\n"
    names: Mapping[str, str] = field(default_factory=dict)

    def write(self, answer: Answer) -> str:
        """An expert's answer in this format."""
        return self.thought.format(thought=answer.thought) + self.without_thought(answer.action)

    def without_thought(self, action: str) -> str:
        """An answer in this format that consists of its action."""
        name, _, payload = action.partition(" ")
        template = self.names.get(name.lower())
        if template is None:
            return self.action.format(action=action)
        longest = max(map(len, _TICKS.findall(payload)), default=2)
        return template.format(name=name, payload=payload, fence="`" * (longest + 1))


_LABEL = Form("Answer with a line 'Thought: ...' and a line 'Action: ...'.", "Action: {action}", "Thought: {thought}\n")

FORMS: Mapping[str, Form] = {
    "auto": _LABEL,
    "label": _LABEL,
    "tag": Form("Think first, then write the action as <action>...</action>.", "<action>{action}</action>"),
    "call": Form("Answer with one tool call.", "<tool_call>\n{action}\n</tool_call>"),
    "fence": Form("Think first, then write the action in one fenced code block.", "```\n{action}\n```"),
    "plain": Form("Answer with the action alone, and with nothing else.", "{action}", ""),
}
"""Formats by the name that a run may choose (``context.parser``)."""

WORDS = Form("", "act {action}", "think {thought} ")
"""Format of the ``words`` style, whose prompts ask for nothing."""


def format_of(parser: str, form: AnswerForm | None, with_tools: bool) -> Form:
    """Format that a prompt asks for.

    Args:
        parser: format that the run chooses; ``auto`` leaves it to the environment.
        form: form that the environment names; None if it names none.
        with_tools: True if the environment has tools, which an answer calls if nobody names a form.
    """
    if parser != "auto":
        return FORMS[parser]
    return _format(form) if form is not None else FORMS["call" if with_tools else "auto"]


@lru_cache(maxsize=64)
def _format(form: AnswerForm) -> Form:
    """Format of a form, whose request shows its examples."""
    asked = _asked(form)
    shown = "\n\n".join(map(asked.without_thought, form.examples))
    return replace(asked, request=f"{asked.request}\n\nFor example:\n\n{shown}") if shown else asked


def _asked(form: AnswerForm) -> Form:
    """Format of a form, without its examples."""
    match form:
        case LineForm(label=label):
            asked = Form(
                f"Answer with a line 'Thought: ...' and a line '{label}: ...'.", f"{label}: {{action}}", _LABEL.thought
            )
        case BlockForm(label=label):
            request = (
                f"Answer with a line 'Thought: ...', then '{label}:' and behind it the whole action, in as many lines "
                "as it needs. Write nothing after it."
            )
            asked = Form(request, f"{label}:\n{{action}}", _LABEL.thought)
        case NamedForm():
            asked = _named(form)
        case TagForm(name=name):
            request = f"Think first, then write the action as <{name}>...</{name}>."
            asked = Form(request, f"<{name}>{{action}}</{name}>")
        case OwnForm():
            before, after = (part.replace("{", "{{").replace("}", "}}") for part in form.written.split("{action}"))
            asked = Form(form.request, f"{before}{{action}}{after}", "")
        case CallForm() | FenceForm() | WholeForm():
            asked = FORMS[{"call": "call", "fence": "fence", "whole": "plain"}[form.kind]]
    return asked


def _named(form: NamedForm) -> Form:
    templates = {each.name.lower(): _template(form, each) for each in form.actions}
    shown = [templates[each.name.lower()].format(name=each.name, payload="...", fence="```") for each in form.actions]
    actions = "\n\n".join(shown)
    choice = "one of these actions" if len(shown) > 1 else "this action"
    request = f"Answer with a line 'Thought: ...' and {choice}, with nothing after it:\n\n{actions}"
    return Form(request, f"{form.label}: {{action}}", "Thought: {thought}\n", templates)


def _template(form: NamedForm, action: NamedAction) -> str:
    line = f"{form.label}: {{name}}"
    if action.fence is not None:
        return f"{line}\n{{fence}}{action.fence}\n{{payload}}\n{{fence}}"
    return f"{line}\n{action.label}: {{payload}}" if action.label is not None else line


def call_text(name: str, arguments: Mapping[str, object]) -> str:
    """A tool call as an environment gets it: one line of JSON with ``name`` and ``arguments``.

    Halves of surrogate pairs, which have no encoding, become question marks.

    Raises:
        TypeError: an argument holds a value that JSON lacks.
        ValueError: an argument holds a number that JSON lacks.
    """
    return encodable(json.dumps({"name": name, "arguments": dict(arguments)}, ensure_ascii=False, allow_nan=False))
