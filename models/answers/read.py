"""Reading an answer: the last complete action before the first invented observation."""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coevo.models.answers.call_tools import answer_of, schemas_of
from coevo.models.answers.calls import (
    Call,
    FoundCall,
    bare_call,
    broken_calls,
    call_spans,
    calls,
    line_calls,
    names_arguments,
)
from coevo.models.answers.labels import TAGS, Found, in_fences, labelled, plain, tagged, thought_before
from coevo.models.answers.observations import invented, turn_end
from coevo.models.answers.spans import Span, Whole, protected
from coevo.models.answers.thinking import without_thinking
from coevo.records.answer_faults import Fault
from coevo.records.demonstration import Answer

_WORDS = re.compile(r"\bthink (?P<thought>.*?)\bact (?P<action>.+)", re.DOTALL)
_NAME = re.compile(r"[\w.:/\-]+")
_FINDERS: Mapping[str, Callable[[str, Whole], list[Found]]] = {
    "auto": lambda text, whole: [*labelled(text, whole), *tagged(text, TAGS[:1], whole)],
    "label": labelled,
    "tag": lambda text, whole: tagged(text, TAGS, whole),
    "call": lambda text, whole: [],
    "fence": lambda text, whole: in_fences(text),
    "plain": plain,
}
"""Search for actions in text, by parser."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Parser of answers in prose (``context.parser``).

    Attributes:
        form: name of the parser.
        tools: tools that the environment offers; empty if an action is text.
        thinking: True if the prompt ends within thinking.
    """

    form: str = "auto"
    tools: Sequence[Mapping[str, Any]] = ()
    thinking: bool = False

    def read(self, text: str, finished: bool = True) -> Answer:
        """Parse an answer.

        Args:
            text: answer, as decoded.
            finished: False if the length limit cut it.
        """
        spoken = without_thinking(text, self.thinking)
        said = spoken.text[: turn_end(spoken.text, protected(spoken.text, call_spans(spoken.text)))]
        over = finished or len(said) < len(spoken.text)
        return self._read(said, over) or _without_action(said, finished, spoken.thinking)

    def _read(self, text: str, finished: bool) -> Answer | None:
        """Answer with the last complete action, or with the fault of its call; None without either."""
        whole = protected(text, call_spans(text))
        labels = self._found(text, whole)
        offered = self._calls(text, labels)
        found = [each for each in labels if not _overlaps(each, offered)]
        if not found:
            found = [each for each in self._found(text, Whole(())) if not _overlaps(each, offered)]
        every: list[Found | FoundCall] = [*found, *offered]
        every.sort(key=lambda each: each.start)
        complete = [each for each in every if finished or _is_complete(each, text)]
        stop = invented(text, complete[0].end, whole) if complete else len(text)
        usable = [each for each in complete if each.start < stop]
        if not self.tools:
            usable = [each for each in usable if isinstance(each, Found)] or usable
        return self._answer(usable[-1], text) if usable else None

    def _found(self, text: str, whole: Whole) -> list[Found]:
        return _FINDERS[self.form](text, whole)

    def _calls(self, text: str, labels: Sequence[Found]) -> list[FoundCall]:
        if self.form not in ("auto", "call"):
            return []
        return calls(text) or (_unmarked(text, labels, schemas_of(self.tools)) if self.tools else [])

    def _answer(self, found: Found | FoundCall, text: str) -> Answer:
        thought = thought_before(text, found.start)
        if not self.tools:
            return _text_answer(found, thought)
        call = found.call if isinstance(found, FoundCall) else _call(found)
        if call is None:
            return Answer(thought, "", Fault.MALFORMED_CALL)
        answer = answer_of(call, self.tools, thought)
        is_text = isinstance(found, Found) and answer.fault == Fault.UNKNOWN_TOOL and not _NAME.fullmatch(call.name)
        return Answer(thought, "", Fault.NOT_A_CALL) if is_text else answer


def _text_answer(found: Found | FoundCall, thought: str) -> Answer:
    if isinstance(found, FoundCall):
        return Answer(thought, "", Fault.NO_TOOLS)
    return Answer(thought, "", Fault.UNFENCED) if found.unclear else Answer(thought, _written(found))


def read_words(text: str) -> Answer:
    """Parse an answer of the ``words`` style; the action is empty if none is found."""
    found = _WORDS.search(text)
    return Answer(text.strip(), "") if found is None else Answer(found["thought"].strip(), found["action"].strip())


def _without_action(text: str, finished: bool, thinking: bool) -> Answer:
    if finished:
        return Answer(text.strip(), "", Fault.NO_ACTION)
    return Answer(text.strip(), "", Fault.CUT_OFF_THINKING if thinking else Fault.CUT_OFF)


def _unmarked(text: str, labels: Sequence[Found], known: Container[str]) -> list[FoundCall]:
    """Calls without marks: in code fences, else at the beginning of a line, else a whole answer in JSON or Python."""
    fenced_calls = [(each.start, each.end, bare_call(each.action)) for each in in_fences(text)]
    found = [FoundCall(*each) for each in fenced_calls if each[2] is not None]
    labelled_parts = Whole(Span(each.start, each.end) for each in labels)
    found = found or [each for each in line_calls(text, known) if each.start not in labelled_parts]
    whole = bare_call(text) if not found and text.lstrip()[:1] in ("{", "[") else None
    found = found if whole is None else [FoundCall(0, len(text), whole)]
    return found or ([] if labels else broken_calls(text))


def _overlaps(found: Found, offered: Sequence[FoundCall]) -> bool:
    """Report whether an action is part of a call, or holds one."""
    return any(found.start < call.end and call.start < found.end for call in offered)


def _is_complete(found: Found | FoundCall, text: str) -> bool:
    """Report whether a cut answer holds all of an action: its form or a later line shows it."""
    if isinstance(found, FoundCall):
        return found.call is not None
    return found.closed or found.end < len(text)


def _written(found: Found) -> str:
    """An action as text, with its ``Action Input:`` behind it."""
    return found.action if found.argument is None else f"{found.action} {found.argument}".strip()


def _call(found: Found) -> Call | None:
    """Call that an action in text describes: a name, JSON, or a call as in Python."""
    if found.argument is not None:
        return Call(found.action, found.argument)
    is_name = found.action[:1] not in ("{", "[") and not names_arguments(found.action)
    return bare_call(found.action) or (Call(found.action, "") if is_name else None)
