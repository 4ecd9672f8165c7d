"""Tool calls in an answer, in the forms that chat templates teach.

The forms differ in their marks and agree in their content: a JSON object with a name and arguments, a name before a
JSON object, tags for every argument, or a call as in Python (``python_notation``). A call is read whole or is
malformed: nothing between its marks is left out.
"""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from coevo.models.answers.observations import invented
from coevo.models.answers.python_notation import python_calls, python_spans
from coevo.models.answers.spans import Span, Whole, objects
from coevo.records.lenient import value_at

_OPEN = re.compile(
    r"<tool_call>|<\|tool_call(?:_begin|_start)?\|>|<\|python_(?:tag|start)\|>|functools(?=\[)|\[TOOL_CALLS\]|<｜tool▁call▁begin｜>"
    r"|(?=<function=)|(?=<invoke name=)|<\|channel\|>commentary to=|```tool_c(?:ode|all)\n|<function_call>|✿FUNCTION✿:"
)
"""Beginnings of calls: Hermes, Qwen, Phi, LFM, Llama, Mistral, DeepSeek, Claude, Kimi, gpt-oss, Gemma, Qwen-Agent."""
_CLOSE = re.compile(
    r"</(?:\w+:)?tool_call>|</function>|<\|/?tool_call(?:_end)?\|>|<｜tool▁call▁end｜>|<\|call\|>|<\|eo[tm]_id\|>"
    r"|<\|im_end\|>|<\|python_end\|>|</s>|</function_calls?>|</invoke>"
)
_END_OF_TURN = re.compile(r"(?:\s*+(?:<\|im_end\|>|<\|eo[tm]_id\|>|</s>))+\Z")
_MAX_END = 64
"""Maximum characters of the marks of an end of a turn."""
_ENDED = re.compile(rf"(?:{_CLOSE.pattern})\Z")
_BEHIND = re.compile(rf"\s*(?:(?:{_CLOSE.pattern})\s*)*+(?:```(?!\w)\s*(?:(?:{_CLOSE.pattern})\s*)*+)?")
"""Marks that end a call."""
_PARTNERS = {"<tool_call>": "</tool_call>", "<function_call>": "</function_call>", "<|tool_call|>": "<|/tool_call|>"}
"""Marks behind a call by the mark before it, without which a call that is cut off may hold more than is there."""
_MAX_PARTNER = max(map(len, _PARTNERS.values()))
_STRAY = re.compile(
    r"</(?:tool_call|function|function_calls?|invoke|parameter|arg_key|arg_value)>|<\|/tool_call\|>|<\|tool_call_end\|>"
    r"|<｜tool▁call▁end｜>"
)
"""Marks of an end that no call has begun: a value before held the marks that seemed to end its call."""
_RESIDUE = re.compile(r"[ \t]*(?:[^\s<]|<(?![|/｜]))|\s*[\]}\[{\"',:\\]")
"""Text behind a call without a mark that ends it, which belongs to the call: it stands in its line, or is notation."""
_NAMED = re.compile(
    r"(?:function<｜tool▁sep｜>)?(?:functions\.)?(?P<name>[\w.\-]{1,128})(?::\d+)?"
    r"(?P<between>(?:\[CALL_ID\]\w+|\[ARGS\]|<｜tool▁sep｜>|<\|tool_call_argument_begin\|>|<\|channel\|>\w+|<\|constrain\|>\w+"
    r"|<\|message\|>|✿ARGS✿:|```json|\s)*+)(?=\{)"
)
"""Name before a JSON object, with the marks between them."""
_FENCE = re.compile(r"```(?:json)?\s*")
_FENCE_END = re.compile(r"\s*```")
_BLANK = re.compile(r"\s*")
_BETWEEN = re.compile(r"[\s;,]*")
_LISTED = re.compile(r"\[(?=[A-Za-z_][\w.\-]*\()")
CALL_MARKS = (_OPEN.pattern, _LISTED.pattern)
"""Patterns of all beginnings of calls, for who reads an answer before it is whole."""
_LIST = re.compile(r"\[[\w.\-]+\([^\n]*\)\]\s*\Z")
_TRIED = 16
"""Maximum number of brackets from which a list of calls to the end of the answer is looked for."""
_NAMES = ("name", "tool", "tool_name", "function", "action", "command")
_ARGUMENTS = ("arguments", "parameters", "args", "action_input", "tool_input", "input", "kwargs")
_BROKEN = re.compile(rf"^[ \t]*+(?:\[[ \t]*+)?(?P<object>\{{\s*[\"']?(?:{'|'.join(_NAMES)})[\"']?\s*:)", re.MULTILINE)
"""Beginning of an object that is a call, if it is JSON."""
_ENVELOPES = ("tool_calls", "tool_call", "function_call")
"""Names under which a message holds its calls."""
_FUNCTION = re.compile(r"<function=(?P<name>[^>\s]{1,128})>\s*|<invoke name=\"(?P<invoked>[^\">\s]{1,128})\">\s*")
_PAIRS = re.compile(r"(?P<name>[\w.\-/]{1,128})\s*(?=<arg_key>)")


class _Notation:
    """Tags of one form: around an argument, and around the call; ``padding`` stands around a value."""

    def __init__(self, opening: str, closing: str, head: str, tail: str, padding: str = "") -> None:
        self.opening = re.compile(opening)
        self.closing, self.padding = closing, padding
        self.marks = re.compile(rf"{opening}|{closing}")
        self.border = re.compile(rf"{closing}\s*+{opening}")
        self.nesting = re.compile(rf"(?P<empty>{head}\s*+{tail})|(?P<head>{head})|{closing}\s*+{tail}")
        self.end = re.compile(rf"\s*{tail}")


_PARAMETERS = _Notation(
    r"<parameter=(?P<name>[^>\s]{1,128})>", "</parameter>", r"<function=[^>\s]{1,128}>", "</function>", "\n"
)
_INVOKED = _Notation(
    r"<parameter name=\"(?P<name>[^\">\s]{1,128})\">",
    "</parameter>",
    r"<invoke name=\"[^\">\s]{1,128}\">",
    "</invoke>",
)
_KEYS = _Notation(
    r"<arg_key>(?P<name>[^<]{0,128})</arg_key>\s*<arg_value>",
    "</arg_value>",
    r"<tool_call>\s*[\w.\-/]{1,128}\s*<arg_key>",
    "</tool_call>",
)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call.

    Attributes:
        name: name of the tool.
        arguments: arguments by name, or one text.
        written: True if the arguments by name are texts whose types only the tool's schema knows.
    """

    name: str
    arguments: Mapping[str, Any] | str
    written: bool = False


@dataclass(frozen=True, slots=True)
class FoundCall:
    """Place of a call in an answer.

    Attributes:
        start: its position.
        end: position behind it.
        call: the call; None if it cannot be parsed.
        closed: True if its marks, and what follows, show that a cut answer holds all of it.
    """

    start: int
    end: int
    call: Call | None
    closed: bool = True


def calls(text: str) -> list[FoundCall]:
    """Calls between the marks of a template, in order; marks in a string of JSON or of Python are data."""
    data = Whole((*objects(text), *python_spans(text)))
    found, position = list[FoundCall](), 0
    while (mark := _opening(text, position, data)) is not None:
        call = _marked(text, mark, data)
        position = max(mark.end(), mark.start() + 1)
        if call is not None:
            found.append(call)
            position = max(position, call.end)
    return found or _listed(text)


def call_spans(text: str) -> list[Span]:
    """Places of the calls that end, without the end of the turn: between marks, and in Python's notation."""
    marked = [each for each in calls(text) if each.call is not None or _ENDED.search(text, each.start, each.end)]
    tails = ((each, text[max(each.start, each.end - _MAX_END) : each.end]) for each in marked)
    spans = (Span(each.start, each.end - len(tail) + len(_END_OF_TURN.sub("", tail))) for each, tail in tails)
    return [*spans, *python_spans(text)]


def _opening(text: str, start: int, data: Whole) -> re.Match[str] | None:
    return next((mark for mark in _OPEN.finditer(text, start) if mark.start() not in data), None)


def _marked(text: str, mark: re.Match[str], data: Whole) -> FoundCall | None:
    """Call behind its opening mark; None if only the mark of another call follows."""
    following = _opening(text, max(mark.end(), mark.start() + 1), data)
    begin, stop = _blank(text, mark.end()), following.start() if following else len(text)
    parsed = _parsed(text, begin)
    if parsed is None:
        end = _closed(text, mark.end(), stop, data)
        return FoundCall(mark.start(), end, None) if text[mark.end() : end].strip() or stop == len(text) else None
    call, inner = parsed
    following = _opening(text, inner, data)
    stop = invented(text, inner, data, following.start() if following else len(text))
    end = _end_behind(text, inner)
    rest = "" if end > inner else text[inner:stop]
    is_open = mark[0].startswith("```") and rest.strip() != ""
    is_flawed = is_open or _RESIDUE.match(rest) is not None or _stray(text, end, stop, data)
    is_ended = _PARTNERS.get(mark[0], "") in text[max(mark.end(), inner - _MAX_PARTNER) : end]
    is_doubtful = call is not None and call.written and text[end:stop].strip() != ""
    return FoundCall(mark.start(), end, None if is_flawed else call, is_ended and not is_doubtful)


def _closed(text: str, start: int, stop: int, data: Whole) -> int:
    """End of a call that cannot be parsed."""
    closing = next((mark for mark in _CLOSE.finditer(text, start, stop) if mark.start() not in data), None)
    return closing.end() if closing else invented(text, start, data, stop)


def _end_behind(text: str, start: int) -> int:
    """Position behind the marks that end a call, and before the blanks behind it."""
    found = _BEHIND.match(text, start)
    return start + len(found[0].rstrip()) if found is not None else start


def _stray(text: str, start: int, stop: int, data: Whole) -> bool:
    return any(mark.start() not in data for mark in _STRAY.finditer(text, start, stop))


def _blank(text: str, start: int) -> int:
    """Position behind the blanks at a position."""
    return _BLANK.match(text, start).end()  # type: ignore[union-attr]  # it matches nothing as well


def _listed(text: str) -> list[FoundCall]:
    """Calls as in Python in a list that ends the answer, or that an invented observation follows."""
    begun = [mark.start() for mark in _LISTED.finditer(text)][-_TRIED:]
    parsed = ((start, python_calls(text, start)) for start in begun)
    found = [(start, each) for start, each in parsed if each is not None and _is_last(text, each[2])]
    if found:
        start, (name, values, end) = found[0]
        return [FoundCall(start, end, Call(name, values))]
    return [FoundCall(start, len(text), None) for start in begun[-1:] if _LIST.match(text, start)]


def _is_last(text: str, end: int) -> bool:
    """Report whether nothing but what is invented follows."""
    return not text[end : invented(text, end, Whole(()))].strip()


def line_calls(text: str, known: Container[str]) -> list[FoundCall]:
    """Calls in JSON without marks: objects at the beginning of a line, and those that follow them in it.

    An object is a call if it has arguments or the name of a known tool; others are data.
    """
    found, end, in_row = list[FoundCall](), 0, True
    for span in objects(text):
        before = text[end : span.start].rpartition("\n")
        in_row, end = not before[2].strip(" \t;,[") and (in_row or before[1] != ""), span.end
        call = _argued(text[span.start : span.end], known) if in_row else None
        if call is not None:
            found.append(FoundCall(span.start, span.end, call))
    return found


def broken_calls(text: str) -> list[FoundCall]:
    """Objects at the beginning of a line that would be calls, but are no JSON."""
    spans = objects(text)
    starts, whole = {span.start for span in spans}, Whole(spans)
    begun = [mark.start("object") for mark in _BROKEN.finditer(text)]
    return [FoundCall(start, len(text), None) for start in begun if start not in starts and start not in whole]


def _argued(body: str, known: Container[str]) -> Call | None:
    found = value_at(body, 0)
    call = None if found is None else call_of(found[0])
    has_arguments = found is not None and isinstance(found[0], dict) and not found[0].keys().isdisjoint(_ARGUMENTS)
    return call if call is not None and (has_arguments or call.name in known) else None


def bare_call(text: str) -> Call | None:
    """Call that is a whole text: JSON, a name before JSON, or Python; None if it is none."""
    start = _blank(text, 0)
    parsed = _parsed(text, start)
    return parsed[0] if parsed is not None and _end_behind(text, parsed[1]) == len(text.rstrip()) else None


def names_arguments(text: str) -> bool:
    """Report whether a text is a name before what may be a JSON object."""
    return _NAMED.match(text) is not None


def _parsed(text: str, start: int) -> tuple[Call | None, int] | None:
    """Call at a position, and its end; the call is None if its value holds the marks that would end it.

    None stands for a text that is no call.
    """
    for read in (_json, _named, _python):
        if (found := read(text, start)) is not None:
            return found
    return _elements(text, start)


def _json(text: str, start: int) -> tuple[Call, int] | None:
    """Last call of one or more JSON values, between which blanks, commas or semicolons stand."""
    fence = _FENCE.match(text, start)
    position, last, end = start if fence is None else fence.end(), None, start
    while text.startswith(("{", "["), position) and (found := value_at(text, position)) is not None:
        last, end = call_of(found[0]), found[1]
        if last is None:
            return None
        position = _BETWEEN.match(text, end).end()  # type: ignore[union-attr]  # it matches nothing as well
    if last is None or text.startswith(("{", "["), position):
        return None
    return last, end + len(text[end:position].rstrip())


def call_of(value: object) -> Call | None:
    """Call in a JSON value, the last one of a list; None if it has no name."""
    while (inner := _inner(value)) is not None:  # a model may nest deeper than Python may recur
        value = inner
    named = [key for key in _NAMES if key in value] if isinstance(value, dict) else []
    if not isinstance(value, dict) or not named or not isinstance(value[named[0]], str):
        return None
    given = [key for key in _ARGUMENTS if key in value]
    empty = [key for key in given[:1] if value[key] is None or value[key] == []]
    rest = {key: part for key, part in value.items() if key not in (named[0], "id", "type", *empty)}
    arguments = value[given[0]] if given else rest
    return Call(value[named[0]], arguments if isinstance(arguments, dict | str) else rest)


def _inner(value: object) -> object:
    """Value in which a list, or a call under the name of one, holds the call; None if it holds none."""
    if isinstance(value, list):
        return value[-1] if value else None
    named = [key for key in (*_NAMES, *_ENVELOPES) if key in value] if isinstance(value, dict) else []
    if not isinstance(value, dict) or not named:
        return None
    inner = value[named[0]]
    return inner if isinstance(inner, dict) or (isinstance(inner, list) and named[0] in _ENVELOPES) else None


def _named(text: str, start: int) -> tuple[Call, int] | None:
    name = _NAMED.match(text, start)
    found = None if name is None else value_at(text, name.end())
    if name is None or found is None or not isinstance(found[0], dict):
        return None
    fence = _FENCE_END.match(text, found[1]) if "```" in name["between"] else None
    return Call(name["name"], found[0]), found[1] if fence is None else fence.end()


def _elements(text: str, start: int) -> tuple[Call | None, int] | None:
    """Call with tags for every argument, whose values are not escaped: a value may hold the tags around it."""
    if (pairs := _PAIRS.match(text, start)) is not None:
        return _tagged(text, pairs["name"], pairs.end(), _KEYS)
    if (head := _FUNCTION.match(text, start)) is None:
        return None
    name, begin = head["name"] or head["invoked"], head.end()
    notation = _PARAMETERS if head["name"] else _INVOKED
    if (end := notation.end.match(text, begin)) is not None:
        return Call(name, {}, written=True), end.end()
    if not text.startswith("{", begin):
        return _tagged(text, name, begin, notation)
    found = value_at(text, begin)
    return (Call(name, found[0]), found[1]) if found is not None and isinstance(found[0], dict) else None


def _tagged(text: str, name: str, begin: int, notation: _Notation) -> tuple[Call | None, int] | None:
    """Call whose arguments begin at a position; one that does not end takes the rest of the text."""
    if notation.opening.match(text, begin) is None:
        return None
    end = _matching(text, begin, notation)
    if end is None:
        return None, len(text)
    arguments = _arguments(text[begin : end[0]], notation)
    return None if arguments is None else Call(name, arguments, written=True), end[1]


def _matching(text: str, begin: int, notation: _Notation) -> tuple[int, int] | None:
    """Places before and behind the tag that ends a call: calls in its values may be written out with their own."""
    depth = 1
    for mark in notation.nesting.finditer(text, begin):
        depth += 0 if mark["empty"] else 1 if mark["head"] else -1
        if depth == 0:
            inner = mark.start() + len(notation.closing)
            return inner, mark.end()
    return None


def _arguments(body: str, notation: _Notation) -> dict[str, object] | None:
    """Arguments by name; None if a value's own tags allow several readings, or if a name occurs twice."""
    borders = list(notation.border.finditer(body))
    marks = sum(1 for _ in notation.marks.finditer(body))
    if borders and marks != 2 * len(borders) + 2:
        return None
    first = notation.opening.match(body)
    if first is None or not body.endswith(notation.closing):
        return None
    heads = [first, *borders]
    stops = [*(border.start() for border in borders), len(body) - len(notation.closing)]
    found = {
        head["name"].strip(): body[head.end() : stop].removeprefix(notation.padding).removesuffix(notation.padding)
        for head, stop in zip(heads, stops, strict=True)
    }
    return dict(found) if len(found) == len(heads) else None


def _python(text: str, start: int) -> tuple[Call, int] | None:
    found = python_calls(text, start)
    return None if found is None else (Call(found[0], found[1]), found[2])
