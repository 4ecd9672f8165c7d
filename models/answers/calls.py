"""Tool calls in an answer, in the forms that chat templates teach.

The forms differ in their marks and agree in their content: a JSON object with a name and arguments, a name before a
JSON object, tags for every argument, or a call as in Python.
"""

import ast
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from coevo.models.answers.observations import invented
from coevo.models.answers.spans import Whole, json_at, objects

_OPEN = re.compile(
    r"<tool_call>|<\|tool_call(?:_begin)?\|>|<\|python_(?:tag|start)\|>|functools(?=\[)|\[TOOL_CALLS\]|<｜tool▁call▁begin｜>|(?=<function=)"
    r"|<\|channel\|>commentary to=|```tool_c(?:ode|all)\n|<function_call>|✿FUNCTION✿:|\[(?=\w+\([^\n]*\)\]\s*\Z)"
)
"""Beginnings of calls: Hermes and Qwen, Phi, Llama, Mistral, DeepSeek, Kimi, gpt-oss, Gemma, Qwen-Agent."""
_CLOSE = re.compile(
    r"</tool_call>|</function>|<\|/?tool_call(?:_end)?\|>|<｜tool▁call▁end｜>|<\|call\|>|<\|eo[tm]_id\|>|<\|im_end\|>"
    r"|</s>|</function_call>"
)
_NAMED = re.compile(
    r"(?:function<｜tool▁sep｜>)?(?:functions\.)?(?P<name>[\w.\-]{1,128})(?::\d+)?"
    r"(?:\[CALL_ID\]\w+|\[ARGS\]|<｜tool▁sep｜>|<\|tool_call_argument_begin\|>|<\|channel\|>\w+|<\|constrain\|>\w+"
    r"|<\|message\|>|✿ARGS✿:|```json|\s)*+(?=\{)"
)
"""Name before a JSON object, with the marks between them."""
_FUNCTION = re.compile(r"<function=(?P<name>[^>\s]{1,128})>")
_PARAMETER = re.compile(r"<parameter=(?P<name>[^>\s]{1,128})>\n?(?P<value>.*?)\n?</parameter>", re.DOTALL)
_PAIR = re.compile(r"<arg_key>(?P<name>[^<]*)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>", re.DOTALL)
_BETWEEN = re.compile(r"[\s;,]*")
_NAMES = ("name", "tool", "tool_name", "function", "action", "command")
_ARGUMENTS = ("arguments", "parameters", "args", "action_input", "tool_input", "input", "kwargs")
_LONGEST = 20_000
"""Maximum characters of a call that is parsed as Python."""


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
    """Place of a call in an answer; ``call`` is None if it cannot be parsed."""

    start: int
    end: int
    call: Call | None


def calls(text: str) -> list[FoundCall]:
    """Calls between the marks of a template, in order; marks in a string of JSON are data."""
    data = Whole(objects(text))
    opening = [mark for mark in _OPEN.finditer(text) if mark.start() not in data]
    return [
        FoundCall(mark.start(), end, _parsed(text[mark.end() : end].strip()))
        for mark, following in pairwise((*opening, None))
        if mark is not None and (end := _end(text, mark.end(), following.start() if following else len(text), data))
    ]


def _end(text: str, start: int, stop: int, data: Whole) -> int:
    """End of a call whose marks begin at ``start``; 0 if only the mark of another call follows."""
    closing = next((mark for mark in _CLOSE.finditer(text, start, stop) if mark.start() not in data), None)
    end = closing.end() if closing else invented(text, start, data, stop)
    return end if text[start:end].strip() or stop == len(text) else 0


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


def _argued(body: str, known: Container[str]) -> Call | None:
    found = json_at(body, 0)
    call = None if found is None else call_of(found[0])
    has_arguments = found is not None and isinstance(found[0], dict) and not found[0].keys().isdisjoint(_ARGUMENTS)
    return call if call is not None and (has_arguments or call.name in known) else None


def bare_call(text: str) -> Call | None:
    """Call that is a whole text: JSON, a name before JSON, or Python; None if it is none."""
    return _parsed(text.strip())


def _parsed(body: str) -> Call | None:
    return next((call for read in (_json, _named, _function, _pairs, _python) if (call := read(body))), None)


def _json(body: str) -> Call | None:
    """Last call of one or more JSON values, between which blanks, commas or semicolons stand."""
    body, position, last = body.removeprefix("```json").lstrip(), 0, None
    while body.startswith(("{", "["), position) and (found := json_at(body, position)) is not None:
        last = call_of(found[0]) or last
        position = _BETWEEN.match(body, found[1]).end()  # type: ignore[union-attr]  # it matches nothing as well
    return last


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
    named = [key for key in _NAMES if key in value] if isinstance(value, dict) else []
    return value[named[0]] if isinstance(value, dict) and named and isinstance(value[named[0]], dict) else None


def _named(body: str) -> Call | None:
    name = _NAMED.match(body)
    found = None if name is None else json_at(body, name.end())
    if name is None or found is None or not isinstance(found[0], dict):
        return None
    return Call(name["name"], found[0])


def _function(body: str) -> Call | None:
    name = _FUNCTION.match(body)
    if name is None:
        return None
    rest = body[name.end() :].lstrip()
    found = json_at(rest, 0) if rest.startswith("{") else None
    if found is not None and isinstance(found[0], dict):
        return Call(name["name"], found[0])
    return Call(name["name"], _values(_PARAMETER, rest), written=True) if "</function>" in rest else None


def _pairs(body: str) -> Call | None:
    name, _, rest = body.partition("\n")
    if "<arg_key>" not in body or "</tool_call>" not in body:
        return None
    return Call(name.partition("<arg_key>")[0].strip(), _values(_PAIR, rest if rest else body), written=True)


def _values(pattern: re.Pattern[str], text: str) -> dict[str, str]:
    return {found["name"].strip(): found["value"] for found in pattern.finditer(text)}


def _python(body: str) -> Call | None:
    """Call as in Python, the last one of a list; arguments without a name are refused."""
    code = re.split(r"</?[|\w]|<\||```", body[:_LONGEST])[0].strip().removeprefix("[").removesuffix("]")
    try:
        last = ast.parse(f"({code},)", mode="eval").body.elts[-1]  # type: ignore[attr-defined]
        if not isinstance(last, ast.Call) or last.args:
            return None
        values = {str(each.arg): ast.literal_eval(each.value) for each in last.keywords}
        return Call(ast.unparse(last.func).removesuffix(".call"), values)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError, AttributeError, IndexError):
        return None
