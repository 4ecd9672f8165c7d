"""Thinking of reasoning models: text between the marks of a template, which is never part of an action."""

import re
from dataclasses import dataclass

from coevo.models.answers.calls import call_spans
from coevo.models.answers.labels import has_label
from coevo.models.answers.spans import Whole, objects, protected, quoted

_NAMES = r"(?:think|thinking|thoughts?|reasoning|scratchpad|reflection|seed:think|longcat_think)"
THINKING_MARKS = (
    rf"(?P<open><{_NAMES}>|\[THINK\]|◁think▷|<\|(?:begin_of_thought|start_thinking)\|>)"
    rf"|(?P<close></{_NAMES}>|\[/THINK\]|◁/think▷|<\|(?:end_of_thought|end_thinking)\|>)"
    r"|(?P<channel><\|channel\|>analysis<\|message\|>)|(?P<end><\|end\|>)"
)
"""Pattern of marks, in letters of either case."""
_MARKS = re.compile(THINKING_MARKS, re.IGNORECASE)
_LINE_START = re.compile(r"^[ \t]*", re.MULTILINE)
_FENCE_BEFORE = re.compile(r"\s*(?:```|~~~)\w*\s*")
"""Beginning of a fence around a whole answer, which hides no thinking."""
_PARTNERS = {"open": "close", "channel": "end"}
FINAL_MARK = r"<\|start\|>assistant|<\|channel\|>final(?: <\|constrain\|>\w+)?<\|message\|>"
"""Marks before the part of an answer that follows the thinking, in the format of gpt-oss."""
_FINAL = re.compile(FINAL_MARK)


@dataclass(frozen=True, slots=True)
class Spoken:
    """An answer without its thinking.

    Attributes:
        text: text outside of it.
        thinking: True if the thinking does not end.
    """

    text: str
    thinking: bool


def opens_thinking(prompt: str) -> bool:
    """Report whether a prompt ends within thinking, so that the answer begins there."""
    marks = list(_MARKS.finditer(prompt))
    return bool(marks) and marks[-1].lastgroup in _PARTNERS and not prompt[marks[-1].end() :].strip()


def thinking_of(prompt: str, template: str) -> str:
    """Thinking of a policy: ``on``, ``off``, ``left to the model``, or ``none``.

    Args:
        prompt: rendered prompt of a turn.
        template: chat template that it was rendered with.
    """
    marks = list(_MARKS.finditer(prompt))
    last = marks[-1] if marks and not prompt[marks[-1].end() :].strip() else None
    if last is not None and last.lastgroup in (*_PARTNERS, "close"):
        return "on" if last.lastgroup in _PARTNERS else "off"
    return "left to the model" if _MARKS.search(template) else "none"


def without_thinking(text: str, thinking: bool, in_code: bool = False) -> Spoken:
    """Remove the thinking from an answer.

    Text before a closing mark without an opening one is thinking as well: the template may have opened it. Marks in a
    JSON object, a fence, a here-document, a call or quotes are data, except that all but objects do not hide the end
    of thinking that has begun.

    Args:
        text: answer.
        thinking: True if the prompt ends within thinking.
        in_code: True if marks in a fence, a here-document or a call end thinking as well: where a form is known, what
            stands before its label is no action.
    """
    kept, since, awaited = list[str](), 0, "close" if thinking else ""
    marks = _Marks(text, in_code)
    for mark in marks.found:
        kind = str(mark.lastgroup)
        if not awaited and marks.is_data(mark, since):
            continue
        if kind in _PARTNERS and not awaited:
            kept.append(text[since : mark.start()])
            awaited = _PARTNERS[kind]
        elif kind == (awaited or "close"):
            kept = kept if awaited else []
            awaited, since = "", mark.end()
    rest = "" if awaited else text[since:]
    return Spoken(_FINAL.sub("", "".join([*kept, rest])), bool(awaited))


class _Marks:
    """Marks of an answer outside of its JSON objects, and which of them are data."""

    def __init__(self, text: str, in_code: bool) -> None:
        data = Whole(() if in_code else objects(text))
        self.found = [mark for mark in _MARKS.finditer(text) if mark.start() not in data]
        self._text = text
        self._last = {str(mark.lastgroup): mark.start() for mark in self.found}
        self._whole, self._quoted = (
            (data if in_code else protected(text, call_spans(text)), Whole(quoted(text)))
            if self.found
            else (data, data)
        )
        self._line_starts = {start.end() for start in _LINE_START.finditer(text)} if self.found else set[int]()
        fence = _FENCE_BEFORE.match(text)
        self._begin = 0 if fence is None else fence.end()
        self._acted = False

    def is_data(self, mark: re.Match[str], since: int) -> bool:
        """Report whether a mark outside of thinking is a part of an action.

        One that opens thinking which never ends is so behind an action's label, unless a line begins with it.

        Args:
            mark: the mark.
            since: beginning of the text that is not thinking.
        """
        if mark.start() == self._begin:
            return False
        if mark.start() in self._whole or mark.start() in self._quoted:
            return True
        ends = self._last.get(_PARTNERS.get(str(mark.lastgroup), str(mark.lastgroup)), -1) >= mark.start()
        if ends or mark.start() in self._line_starts:
            return False
        self._acted = self._acted or has_label(self._text[since : mark.start()])
        return self._acted
