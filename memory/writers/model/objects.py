"""Finding of the object in a model's answer: fenced, in prose, behind drafts, or cut off.

No value vanishes unseen: an object that names a field twice is ``Doubled``, which is no answer and no item.
"""

import json
import re
from typing import Any

from pydantic_core import from_json

TRIED = 16
"""Maximum number of braces, other than those of answers, at which an object is looked for."""
ENDS = ("}", "]}")
"""Brackets that an answer may lack after its last whole item."""
ITEM = 3
"""Depth of an item: in the list of the answer's object."""
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*+"?)(\s*:)?|[{}\[\]]', re.DOTALL)
"""A text, which may be cut off, with the colon behind a name; or a bracket."""


class Doubled(list[tuple[str, Any]]):
    """Names and values of an object that names a field twice: nobody knows which value is meant."""


def fields_of(text: str, name: str) -> tuple[dict[str, Any] | None, bool]:
    """Fields of the last object with a list of this name, and whether the object ends.

    An object that was cut off counts where none is whole. None stands for an answer that cannot be read.
    """
    found, others = _whole(text, name)
    if found:
        last = found[-1]
        return (last if isinstance(last, dict) else None), True
    for start in reversed(others):
        made, _ = _decoded(_patched(text[start:]), 0)
        if isinstance(made, dict) and _fits(made, name, text):
            return made, True
    for start in others:
        if isinstance(made := _ended(text[start:], name), dict | Doubled):
            return (made if isinstance(made, dict) else None), True
    for start in others:
        if (cut := _cut(text[start:], name)) is not None:
            return cut, False
    return None, True


def _whole(text: str, name: str) -> tuple[list[object], list[int]]:
    """Whole objects of the asked form, those with a field twice included, and the places of other braces."""
    found, others = list[object](), list[int]()
    start = text.find("{")
    while start >= 0 and len(others) < TRIED:
        made, end = _decoded(text, start)
        if _fits(made, name, text[start:end]):
            found.append(made)
        else:
            others.append(start)
            end = start + 1
        start = text.find("{", end)
    return found, others


def _fits(made: object, name: str, text: str) -> bool:
    """Return True for an object of the asked form, or one with a field twice whose text names the list."""
    if isinstance(made, Doubled):
        return f'"{name}"' in text
    return isinstance(made, dict) and isinstance(made.get(name), list)


def _decoded(text: str, start: int) -> tuple[object, int]:
    """The object that begins at a place, and its end; None if there is none."""
    try:
        return json.JSONDecoder(object_pairs_hook=_object).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | Doubled:
    made = dict(pairs)
    return made if len(made) == len(pairs) else Doubled(pairs)


def _patched(text: str) -> str:
    """The object at the beginning of a text, with each item that is no JSON as a text: the others can be read."""
    parts, depth, begun, done = list[str](), 0, 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] in ("{", "["):
            depth += 1
            begun = token.start() if depth == ITEM else begun
        elif token[0] in ("}", "]"):
            if depth == ITEM and _decoded(item := text[begun : token.end()], 0)[0] is None:
                parts += [text[done:begun], json.dumps(item)]
                done = token.end()
            depth -= 1
    return "".join([*parts, text[done:]])


def _ended(text: str, name: str) -> object:
    """An object whose text ends after a whole item, with the brackets that it lacks."""
    for end in ENDS:
        made, _ = _decoded(f"{text.rstrip().rstrip(',')}{end}", 0)
        if made is not None:
            return made if _fits(made, name, text) else None
    return None


def _cut(text: str, name: str) -> dict[str, Any] | None:
    """An object that does not end, as far as it can be read."""
    try:
        made = from_json(text, allow_partial=True)
    except ValueError:
        return None
    return made if _fits(made, name, text) and not _repeats(text) else None


def _repeats(text: str) -> bool:
    """Return True if the object at the beginning of a text, or one in it, names a field twice."""
    # ``from_json`` would keep the last value alone. It also reads up to a bracket too many, so that one may come here.
    held: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        if token[0] in ("{", "["):
            held.append(set())
        elif token[0] in ("}", "]"):
            held.pop()
            if not held:
                return False
        elif token[2] is not None:
            field = _name(token[1])
            if field in held[-1]:
                return True
            held[-1].add(field)
    return False


def _name(text: str) -> str:
    """Name of a field as it is meant; behind the place where ``from_json`` stopped it may be no JSON."""
    try:
        return str(json.loads(text))
    except ValueError:
        return text
