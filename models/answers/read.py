"""Reading an answer in the form of its environment, or in whichever form it has where the environment names none.

A labelled form is read by ``label_reader``. In the others, the last complete action before the first invented
observation counts: thinking quotes tags and fences.
"""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from coevo.models.answers.answer_page import label_pattern, plain_shape
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
from coevo.models.answers.label_payloads import is_template
from coevo.models.answers.label_reader import read_labelled
from coevo.models.answers.labels import TAGS, Found, code_in_fences, in_fences, labelled, plain, tagged, thought_before
from coevo.models.answers.observations import invented, turn_end
from coevo.models.answers.spans import Span, Whole, fences, heredocs, protected, quoted
from coevo.models.answers.thinking import Spoken, without_thinking
from coevo.models.answers.wrappings import from_object, is_labelled, unwrapped
from coevo.records.answer_faults import Fault
from coevo.records.answer_form import (
    AnswerForm,
    BlockForm,
    CallForm,
    FenceForm,
    LineForm,
    NamedForm,
    OwnForm,
    TagForm,
    WholeForm,
)
from coevo.records.demonstration import Answer
from coevo.records.inert import encodable
from coevo.records.lenient import value_at
from coevo.utilities.errors import ConfigError
from coevo.utilities.part_registry import Registry

MAX_ACTION_CHARS = 200_000
"""Maximum characters of an action from the environment's own parser."""
_LEADING = re.compile(
    r"\A(?:\s*(?:<\|(?!channel|begin_of_thought|start_thinking|(?:user|system|observation)\|)[\w\-]{1,30}\|>"
    r"(?:assistant(?=<\|))?|\[/?INST\]|</?s>|<(?:start|end)_of_turn>"
    r"|<｜Assistant｜>)(?!(?:user|system|tool)[ \t]*(?:\n|<\|)))+",
    re.IGNORECASE,
)
"""Marks of a template before an answer; those of another speaker begin none."""
_ANALYSIS = re.compile(r"\A\s*analysis(?:.*(?P<final>assistantfinal)|(?=[A-Z][a-z']*,? [A-Za-z]).*)", re.DOTALL)
"""Thinking in the format of gpt-oss, from whose marks a server took all but their words."""
_AROUND = re.compile(
    r"\A\s*<(?P<tag>answer|response|solution)>(?P<said>.*?)(?:</(?P=tag)>(?P<behind>.*))?\Z", re.DOTALL
)
"""Tag around a whole answer in a labelled form."""
_WORDS = re.compile(r"\bthink (?P<thought>.*?)\bact (?P<action>.+)", re.DOTALL)
_NAME = re.compile(r"[\w.:/\-]+")
_FINDERS: Mapping[str, Callable[[str, Whole], list[Found]]] = {
    "auto": lambda text, whole: [*labelled(text, whole), *tagged(text, TAGS[:1], whole)],
    "label": labelled,
    "tag": lambda text, whole: tagged(text, TAGS, whole),
    "call": lambda text, whole: [],
    "fence": lambda text, whole: code_in_fences(text),
    "plain": plain,
}
"""Search for actions in text, by the name of their format (``context.parser``)."""
_NAMED = {CallForm: "call", FenceForm: "fence", WholeForm: "plain"}
"""Name of each form that has one format."""
_OWN = Registry[Callable[[str, bool], object]]("Guide.answer", {})


@dataclass(frozen=True, slots=True)
class Reader:
    """Reader of answers in prose.

    Attributes:
        form: form of the environment's answers, or name of a format (``context.parser``); ``auto`` for any.
        tools: tools that the environment offers; empty if an action is text.
        thinking: True if the prompt ends within thinking.
    """

    form: AnswerForm | str = "auto"
    tools: Sequence[Mapping[str, Any]] = ()
    thinking: bool = False

    def read(self, text: str, finished: bool = True) -> Answer:
        """Parse an answer.

        Args:
            text: answer, as decoded.
            finished: False if the length limit cut it.
        """
        text = text.replace("\r\n", "\n")
        is_own = isinstance(self.form, LineForm | BlockForm | NamedForm | TagForm | OwnForm)
        text = _LEADING.sub("", text) if is_own else text
        spoken = _spoken(text, self.thinking, is_own)
        whole = spoken.text
        said = whole[: turn_end(whole, _data(whole, is_own))]
        over = finished or len(said) < len(whole)
        answer = self._in_form(said, over)
        if answer is None and isinstance(self.form, TagForm) and spoken.thinking and finished:
            answer = _tag_at_end(text, self.form.name)
        answer = answer or _without_action(said, finished, spoken.thinking)
        return self._without_marks(answer)

    def _without_marks(self, answer: Answer) -> Answer:
        """An answer without marks around its action, where that is one line."""
        if not isinstance(self.form, LineForm | TagForm) or "\n" in answer.action:
            return answer
        label = self.form.label if isinstance(self.form, LineForm) else self.form.name
        return replace(answer, action=unwrapped(answer.action, label, self.form.examples))

    def _in_form(self, text: str, finished: bool) -> Answer | None:
        """Answer in the form of the environment; None if it holds nothing of the kind."""
        if isinstance(self.form, LineForm | BlockForm | NamedForm):
            said = _without_tag(text, self.form.label)
            said = from_object(said, self.form.label) if isinstance(self.form, LineForm) else said
            answer = read_labelled(self.form, said, finished)
            return self._in_tag(text, finished) if answer.fault in (Fault.NO_ACTION, Fault.CUT_OFF) else answer
        if isinstance(self.form, OwnForm):
            return _own_answer(self.form, text, finished)
        return self._read(text, finished)

    def _in_tag(self, text: str, finished: bool) -> Answer | None:
        """Answer in a tag that has the name of a form's label, where the label itself is not there."""
        is_plain = isinstance(self.form, LineForm) and finished and " " not in self.form.label
        if not isinstance(self.form, LineForm) or not is_plain or is_labelled(text, self.form.label):
            return None
        return replace(self, form=TagForm(name=self.form.label.lower()))._read(text, finished)

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
        if isinstance(self.form, TagForm):
            return [each for each in tagged(text, [self.form.name], whole) if not is_template(each.action)]
        return _FINDERS[self._format](text, whole)

    @property
    def _format(self) -> str:
        return self.form if isinstance(self.form, str) else _NAMED[type(self.form)]

    def _calls(self, text: str, labels: Sequence[Found]) -> list[FoundCall]:
        if isinstance(self.form, TagForm) or self._format not in ("auto", "call"):
            return []
        found = self._alike(text, labels)
        early = self._alike(text[: found[0].start], labels) if found and self.tools else []
        return [*(each for each in early if each.call is not None), *found]

    def _alike(self, text: str, labels: Sequence[Found]) -> list[FoundCall]:
        """Calls in the first notation that a text has: those between marks, those without, or those behind labels."""
        found = calls(text) or (_unmarked(text, labels, schemas_of(self.tools)) if self.tools else [])
        return found or (_labelled_calls(text) if isinstance(self.form, CallForm) and self.tools else [])

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


def _spoken(text: str, thinking: bool, is_own: bool) -> Spoken:
    """Answer without thinking, also such whose marks are lost, and without marks before it that end no turn."""
    spoken = without_thinking(text, thinking, in_code=is_own)
    lost = _ANALYSIS.match(spoken.text)
    if lost is not None:
        return Spoken(spoken.text[lost.end() :], lost["final"] is None)
    marks = _LEADING.match(spoken.text) if is_own else None
    is_next = marks is not None and turn_end(spoken.text, Whole(())) >= marks.end()
    return Spoken(spoken.text[marks.end() :], spoken.thinking) if marks is not None and is_next else spoken


def _data(text: str, is_own: bool) -> Whole:
    """Parts in which marks of a template are data; in a known form, a fence may be open where a turn ends."""
    if not is_own:
        return protected(text, call_spans(text))
    code = Whole(fences(text))
    strings = (each for each in quoted(text) if each.start in code and text[each.start] != "`")
    return Whole((*(each for each in heredocs(text) if each.closed), *strings))


def _without_tag(text: str, label: str) -> str:
    """Text of an answer without a tag around all of it, or around its label."""
    around = _AROUND.match(text)
    if around is None:
        return text
    is_whole = not (around["behind"] or "").strip() or label_pattern(label).search(plain_shape(around["said"]))
    return around["said"] if is_whole else text


def _text_answer(found: Found | FoundCall, thought: str) -> Answer:
    if isinstance(found, FoundCall):
        return Answer(thought, "", Fault.NO_TOOLS)
    return Answer(thought, "", Fault.UNFENCED) if found.unclear else Answer(thought, _written(found))


def _own_answer(form: OwnForm, text: str, finished: bool) -> Answer | None:
    """Answer of the environment's own parser; what it raises, or returns instead of text, is a fault.

    Raises:
        ConfigError: there is no such parser.
    """
    parser = _parser(form.parser)
    try:
        action = parser(text, finished)
    except Exception:  # noqa: BLE001  (a parser of somebody else may raise anything)
        return Answer(text.strip(), "", Fault.PARSER_FAILED)
    if action is None or action == "":
        return None
    if not isinstance(action, str) or len(action) > MAX_ACTION_CHARS:
        return Answer(text.strip(), "", Fault.PARSER_FAILED)
    return Answer(thought_before(text, len(text)), encodable(action))


@lru_cache(maxsize=16)
def _parser(reference: str) -> Callable[[str, bool], object]:
    """The function at ``package.module:function``. Raises ``ConfigError`` if there is none."""
    found = _OWN.imported(reference, reference)
    if not callable(found):
        raise ConfigError(f"Guide.answer = {reference!r}: a {type(found).__name__} is no function: name one")
    return found


def check_parser(form: AnswerForm | None) -> None:
    """Import the parser of an ``OwnForm``. Raises ``ConfigError`` if there is none, or if it is no function."""
    if isinstance(form, OwnForm):
        _parser(form.parser)


def _tag_at_end(text: str, name: str) -> Answer | None:
    """Action in the tag that ends an answer whose thinking does not end."""
    found = re.search(rf"<{name}>((?:(?!</?{name}>).)+)</{name}>\s*\Z", text, re.IGNORECASE | re.DOTALL)
    action = "" if found is None else found[1].strip()
    return Answer("", action) if action and not is_template(action) else None


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
    whole = bare_call(text) if not found and (text.lstrip()[:1] in ("{", "[") or names_arguments(text)) else None
    found = found if whole is None else [FoundCall(0, len(text), whole)]
    return found or ([] if labels else broken_calls(text))


def _labelled_calls(text: str) -> list[FoundCall]:
    """Calls behind labels, with their arguments in JSON: plain text behind a label is no call of a tool."""
    every = ((each, _call(each)) for each in labelled(text, protected(text, call_spans(text))))
    return [
        FoundCall(each.start, each.end, call)
        for each, call in every
        if call is not None and (not isinstance(call.arguments, str) or value_at(call.arguments.strip(), 0) is not None)
    ]


def _overlaps(found: Found, offered: Sequence[FoundCall]) -> bool:
    """Report whether an action is part of a call, or holds one."""
    return any(found.start < call.end and call.start < found.end for call in offered)


def _is_complete(found: Found | FoundCall, text: str) -> bool:
    """Report whether a cut answer holds all of an action: its form or a later line shows it."""
    if isinstance(found, FoundCall):
        return found.call is not None and found.closed
    return not found.output and (found.closed or found.end < len(text))


def _written(found: Found) -> str:
    """An action as text, with its ``Action Input:`` behind it."""
    return found.action if found.argument is None else f"{found.action} {found.argument}".strip()


def _call(found: Found) -> Call | None:
    """Call that an action in text describes: a name, JSON, or a call as in Python."""
    if found.argument is not None:
        return Call(found.action, found.argument)
    is_name = found.action[:1] not in ("{", "[") and not names_arguments(found.action)
    return bare_call(found.action) or (Call(found.action, "") if is_name else None)
