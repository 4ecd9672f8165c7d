"""Calls with tags for every argument, whose values are not escaped: a value may hold the tags around it."""

import re
from typing import NamedTuple

from coevo.records.lenient import value_at

_FUNCTION = re.compile(r"<function=(?P<name>[^>\s]{1,128})>\s*|<invoke name=\"(?P<invoked>[^\">\s]{1,128})\">\s*")
_PAIRS = re.compile(r"(?P<name>[\w.\-/]{1,128})\s*(?=<arg_key>)")


class Elements(NamedTuple):
    """A call.

    Attributes:
        name: name of the tool.
        arguments: arguments by name; None if they can be read in several ways, or not at all.
        written: True if the arguments are texts whose types only the tool's schema knows.
        end: position behind the call.
    """

    name: str
    arguments: dict[str, object] | None
    written: bool
    end: int


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


def elements_at(text: str, start: int) -> Elements | None:
    """Call at a position; None if there is none."""
    if (head := _FUNCTION.match(text, start)) is not None:
        return _function(text, head)
    if (pairs := _PAIRS.match(text, start)) is not None:
        return _read(text, pairs["name"], pairs.end(), _KEYS)
    return None


def _function(text: str, head: re.Match[str]) -> Elements | None:
    name, begin = head["name"] or head["invoked"], head.end()
    notation = _PARAMETERS if head["name"] else _INVOKED
    if (end := notation.end.match(text, begin)) is not None:
        return Elements(name, {}, True, end.end())
    if not text.startswith("{", begin):
        return _read(text, name, begin, notation)
    found = value_at(text, begin)
    if found is None or not isinstance(found[0], dict):
        return None
    return Elements(name, found[0], False, found[1])


def _read(text: str, name: str, begin: int, notation: _Notation) -> Elements | None:
    """Call whose arguments begin at a position; one that does not end takes the rest of the text."""
    if notation.opening.match(text, begin) is None:
        return None
    end = _matching(text, begin, notation)
    if end is None:
        return Elements(name, None, True, len(text))
    return Elements(name, _arguments(text[begin : end[0]], notation), True, end[1])


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
