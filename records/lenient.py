"""JSON as models write it: with Python's quotes and names, with comments, commas at ends and line breaks in texts.

Strict JSON is tried first. What is left is put into Python's notation and read by ``ast.literal_eval``. Whatever could
be meant in two ways is refused: an escape that JSON and Python read differently, two texts without a comma between
them, a text with an unescaped quote, a name that occurs twice, a missing bracket.
"""

import ast
import json
import re

MAX_VALUE_CHARS = 200_000
"""Maximum characters of a value that is read leniently."""
MAX_DEPTH = 100
"""Maximum depth of such a value, which Python's parser can read."""
_DECODER = json.JSONDecoder(strict=False)
_STRING = r"\"(?:[^\"\\]|\\.)*+(?:\"|(?P<cut>\Z))|'(?:[^'\\]|\\.)*+(?:'|(?P<bare>\Z))"
_NUMBER = r"[+\-]?(?:0[xX][0-9a-fA-F]+|(?:(?:0|[1-9]\d*)(?:\.\d+)?|(?<!,)\.\d+)(?:[eE][+\-]?\d+)?)"
"""No part of one that a comma divides: ``1,000`` and ``1,.5`` may each be one number or two."""
TOKEN = re.compile(
    rf"(?P<string>{_STRING})|(?P<comment>//[^\n]*|\#[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|(?P<open>\Z)))"
    r"|(?P<opens>[\[{])|(?P<closes>[\]}])|(?P<comma>,)|(?P<colon>:)|(?P<blank>\s+)"
    rf"|(?P<value>{_NUMBER}(?![\w.])|[A-Za-z_$][\w$]*)|(?P<other>.)",
    re.DOTALL,
)
"""A text, a comment, a bracket, or another part of nearly JSON; ``cut``, ``bare`` and ``open`` do not end."""
_NAMES = {"true": "True", "false": "False", "null": "None", "True": "True", "False": "False", "None": "None"}
_ESCAPE = re.compile(r"\\(?:[\\\"'bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})|\\?[\n\r\0]|\\")
"""Escapes that JSON5 and Python read alike, and characters of a text that Python's notation lacks."""
_SPELLED = {"\n": "\\n", "\r": "\\r", "\0": "\\0", "\\\n": "", "\\\r": ""}


def value_at(text: str, start: int) -> tuple[object, int] | None:
    """JSON value that begins at a position, and its end, read strictly, else leniently; None if there is none.

    A value that is not strict JSON is an object or a list.
    """
    return strict_at(text, start) or lenient_at(text, start)


def strict_at(text: str, start: int) -> tuple[object, int] | None:
    """JSON value that begins at a position, and its end; None if there is none."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def lenient_at(text: str, start: int) -> tuple[object, int] | None:
    """Object or list in nearly JSON that begins at a position, and its end; None if there is none."""
    written, depth, before = list[str](), 0, ""
    for token in TOKEN.finditer(text, start, start + MAX_VALUE_CHARS):
        kind = str(token.lastgroup)
        part = _python(token)
        if part is None or depth > MAX_DEPTH or (before in ("string", "value") and kind in ("string", "value")):
            return None
        before = before if kind in ("blank", "comment") else kind
        depth += (kind == "opens") - (kind == "closes")
        written.append(part)
        if depth <= 0:
            return _evaluated("".join(written), token.end())
    return None


def _python(token: re.Match[str]) -> str | None:
    """A token in Python's notation; None if it has none that means the same."""
    if token["cut"] is not None or token["bare"] is not None or token["open"] is not None or token["other"]:
        return None
    if token["string"]:
        return _text(token["string"])
    if token["comment"] or token["blank"]:
        return " "
    word: str = token[0]
    return _NAMES.get(word) if word[0].isalpha() or word[0] in "_$" else word


def _text(string: str) -> str | None:
    """A quoted text in Python's notation, on one line; None if an escape has two meanings."""
    inner = string[1:-1].replace("\\/", "/") if string[0] == '"' and "\\\\" not in string else string[1:-1]
    escapes = {mark[0] for mark in _ESCAPE.finditer(inner)}
    if "\\" in escapes:
        return None
    return string[0] + _ESCAPE.sub(lambda mark: _SPELLED.get(mark[0], mark[0]), inner) + string[0]


def _evaluated(code: str, end: int) -> tuple[object, int] | None:
    try:
        tree = ast.parse(code, mode="eval")
        value = ast.literal_eval(tree)
        return (value, end) if _is_json(value) and not any(map(_repeats, ast.walk(tree))) else None
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def _repeats(node: ast.AST) -> bool:
    """Report whether a node is an object that names a field twice: nobody knows which value is meant."""
    names = [key.value for key in node.keys if isinstance(key, ast.Constant)] if isinstance(node, ast.Dict) else []
    return len(set(names)) < len(names)


def _is_json(value: object) -> bool:
    """Report whether a value consists of objects with names, lists, texts, numbers and JSON's constants."""
    if isinstance(value, dict):
        return all(isinstance(name, str) for name in value) and all(map(_is_json, value.values()))
    return all(map(_is_json, value)) if isinstance(value, list) else isinstance(value, str | int | float | None)
