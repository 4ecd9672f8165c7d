"""Calls in Python's notation, ``search(query="Rome", most=2)``, as models write them.

Texts are found first, so that nothing in them counts as notation. A text may hold line breaks, a name of an argument
may be a keyword such as ``from``, and JSON's constants are values.
"""

import ast
import re
import warnings
from functools import lru_cache
from typing import Any

from coevo.models.answers.spans import Span

MAX_CALL_CHARS = 20_000
"""Maximum characters of a call."""
_NAME = re.compile(r"(?P<name>[A-Za-z_][\w.\-]{0,127})\(")
_NAMING = re.compile(r"(?<![\w.\-])\[?[A-Za-z_][\w.\-]{0,127}\(\s*[A-Za-z_][\w\-]*\s*=(?!=)")
"""Beginning of a call whose first argument has a name, or of a list of such calls."""
_FAILURES = 32
"""Maximum number of calls that cannot be read behind which others are looked for: each may be read to the end."""
_TEXT = (
    r"(?P<prefix>[rRbBuUfF]{0,2})(?:(?P<long>\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*+\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*+''')"
    r"|(?P<text>\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'))"
)
_TOKEN = re.compile(
    rf"(?P<quoted>{_TEXT})|(?P<comment>\#[^\n]*)|(?P<opens>[(\[{{])|(?P<closes>[)\]}}])"
    r"|(?P<named>[A-Za-z_][\w\-]*)\s*=(?!=)|(?P<word>\w+)|(?P<cut>[\"'])|[^\w\"'#()\[\]{}]+|.",
    re.DOTALL,
)
_CONSTANTS = {"true": "True", "false": "False", "null": "None"}
_BREAK = re.compile(r"\\\\|\\?(?:\r\n|\n|\r)|\\.")
_SEPARATOR = re.compile(r"\s*[,;]?\s*")


def python_calls(text: str, start: int) -> tuple[str, dict[str, Any], int] | None:
    """Calls that begin at a position, also in a list, with nothing between them.

    Returns:
        Name and arguments of the last one, and the end of all; None if there is none, or if one cannot be read or has
        an argument without a name.
    """
    listed = text.startswith("[", start)
    position, last = start + listed, None
    while (found := _one(text, position)) is not None:
        last = found
        position = _SEPARATOR.match(text, found[2]).end()  # type: ignore[union-attr]  # it matches nothing as well
    if last is None or _NAME.match(text, position) is not None:
        return None
    if not listed:
        return last
    return (last[0], last[1], position + 1) if text.startswith("]", position) else None


@lru_cache(maxsize=8)
def python_spans(text: str) -> tuple[Span, ...]:
    """Calls in a text whose first argument has a name: marks of a template in their texts are data."""
    spans, end, failed = list[Span](), 0, 0
    for mark in _NAMING.finditer(text):
        if mark.start() < end or failed == _FAILURES:
            continue
        found = python_calls(text, mark.start())
        failed += found is None
        if found is not None:
            end = found[2]
            spans.append(Span(mark.start(), end))
    return tuple(spans)


def _one(text: str, start: int) -> tuple[str, dict[str, Any], int] | None:
    opening = _NAME.match(text, start)
    if opening is None:
        return None
    code, names, depth, was_text = list[str](), list[str](), 1, False
    for token in _TOKEN.finditer(text, opening.end(), opening.end() + MAX_CALL_CHARS):
        depth += (token["opens"] is not None) - (token["closes"] is not None)
        if depth == 0:
            values = _values("".join(code), names)
            return None if values is None else (opening["name"].removesuffix(".call"), values, token.end())
        if token["cut"] is not None or (was_text and token["quoted"] is not None):
            return None  # two texts in a row are a text with a quote that is not escaped
        was_text = token["quoted"] is not None or (was_text and token[0].isspace())
        if token["named"] is not None and depth == 1:
            code.append(f"a{len(names)}=")
            names.append(token["named"])
        else:
            code.append(_written(token))
    return None


def _written(token: re.Match[str]) -> str:
    """A token as Python reads it: a line break in a text within one pair of quotes becomes its escape."""
    if token["text"] is not None and "r" not in token["prefix"].lower():
        return token["prefix"] + _BREAK.sub(_escaped, token["text"])
    return _CONSTANTS.get(token[0], token[0])


def _escaped(mark: re.Match[str]) -> str:
    return mark[0] if mark[0][-1] not in "\r\n" else "" if mark[0].startswith("\\") else "\\n"


def _values(code: str, names: list[str]) -> dict[str, Any] | None:
    """Arguments by name; None if they are not values with names, each once."""
    try:
        with warnings.catch_warnings(action="ignore"):
            call = ast.parse(f"f({code}\n)", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or len(set(names)) < len(names):
            return None
        given = [(str(each.arg), ast.literal_eval(each.value)) for each in call.keywords]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    if [name for name, _ in given] != [f"a{number}" for number in range(len(names))]:
        return None
    return dict(zip(names, (value for _, value in given), strict=True))
