"""Finding of the object in a model's answer: fenced, in prose, behind drafts, flawed, or cut off.

Strict JSON is looked for first. One flaw does not lose the answer: comments, commas at ends and line breaks outside of
the items are read leniently, and an item that cannot be read stands as its text among the others. No value vanishes
unseen: an object that names a field twice is ``Doubled``, which is no answer and no item.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pydantic_core import from_json

from coevo.records.lenient import TOKEN, lenient_at

MOST_READ = 4_000_000
"""Maximum characters that are read in vain, in the search for strict JSON."""
LEAST = 400
"""Characters that an attempt counts for at least."""
NEAR, LISTS = 8, 2
"""Maximum number of braces before a list at which its object is looked for, and of lists, where none is strict."""
ENDS = ("}", "]}")
"""Brackets that an answer may lack after its last whole item."""
ITEM = 3
"""Depth of an item: in the list of the answer's object."""
_STRICT = re.compile(r"\{(?=\s*[\"}])")
_BEGIN = re.compile(r"\{(?=\s*(?:[\"'/#]|\{|\Z))")
"""Brace of what may be an object, in strict JSON or not."""
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*+"?)(\s*:)?|[{}\[\]]', re.DOTALL)
"""A text, which may be cut off, with the colon behind a name; or a bracket."""


class Doubled(list[tuple[str, Any]]):
    """Names and values of an object that names a field twice: nobody knows which value is meant."""


def fields_of(text: str, name: str) -> tuple[dict[str, Any] | None, bool]:
    """Fields of the last object with a list of this name, and whether the object ends.

    An object that was cut off counts where none is whole. None stands for an answer that cannot be read.
    """
    found = _whole(text, name)
    if found:
        last = found[-1]
        return (last if isinstance(last, dict) else None), True
    tails = [text[start:] for start in _begun(text, name)]
    for tail in reversed(tails):
        if isinstance(made := _read(_mended(tail), name), dict | Doubled):
            return (made if isinstance(made, dict) else None), True
    for tail in tails:
        if isinstance(made := _ended([tail, *_mended(tail)], name), dict | Doubled):
            return (made if isinstance(made, dict) else None), True
    for tail in tails:
        if (cut := _cut(tail, name) or _read(_mended(tail, cut=True), name)) is not None:
            return (cut if isinstance(cut, dict) else None), not isinstance(cut, dict)
    return None, True


def _whole(text: str, name: str) -> list[object]:
    """Whole objects of the asked form in strict JSON, those with a field twice included."""
    found, left, behind = list[object](), MOST_READ, 0
    for brace in _STRICT.finditer(text):
        if left <= 0 or brace.start() < behind:
            continue
        made, end = _decoded(text, brace.start())
        if _fits(made, name, text[brace.start() : end]):
            found.append(made)
            behind = end
        else:
            left -= max(end - brace.start(), LEAST)
    return found


def _begun(text: str, name: str) -> list[int]:
    """Braces at which an object with the list may begin, in order: the nearest ones before its name."""
    names = [mark.start() for mark in re.finditer(rf"[\"']{re.escape(name)}[\"']\s*:\s*\[", text)]
    braces = [mark.start() for mark in _BEGIN.finditer(text)]
    near = ([brace for brace in braces if brace < start][-NEAR:] for start in names[-LISTS:])
    return sorted({brace for each in near for brace in each})


def _fits(made: object, name: str, text: str) -> bool:
    """Return True for an object of the asked form, or one with a field twice whose text names the list."""
    if isinstance(made, Doubled):
        return f'"{name}"' in text
    return isinstance(made, dict) and isinstance(made.get(name), list)


def _decoded(text: str, start: int) -> tuple[object, int]:
    """The object that begins at a place, and its end; None, and where the reading ended, if there is none."""
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return None, max(error.pos, start + 1)
    except (ValueError, RecursionError):
        return None, len(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | Doubled:
    made = dict(pairs)
    return made if len(made) == len(pairs) else Doubled(pairs)


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


class _Bracket(NamedTuple):
    """A bracket outside of texts and comments; one that closes counts to the depth that it ends."""

    opens: bool
    start: int
    end: int
    depth: int


def _brackets(text: str, pattern: re.Pattern[str]) -> Iterator[_Bracket]:
    """Brackets of the value at the beginning of a text, up to its end."""
    depth = 0
    for token in pattern.finditer(text):
        if token[0] in ("{", "["):
            depth += 1
            yield _Bracket(True, token.start(), token.end(), depth)
        elif token[0] in ("}", "]"):
            yield _Bracket(False, token.start(), token.end(), depth)
            depth -= 1
            if depth == 0:
                return


def _read(texts: Iterable[str], name: str) -> object:
    """First object of the asked form at the beginning of a text, read strictly, else leniently."""
    for text in texts:
        made, _ = _decoded(text, 0)
        lenient = lenient_at(text, 0) if made is None else None
        made = made if lenient is None else lenient[0]
        if _fits(made, name, text):
            return made
    return None


def _mended(text: str, cut: bool = False) -> list[str]:
    """The object at the beginning of a text, each of its items in strict JSON, or as a text.

    Quotes of JSON alone delimit texts in the first one, those of Python and comments count in the second.

    Args:
        text: the object, and what follows it.
        cut: True to end the object behind the item in which it was cut off.
    """
    made = (_patched(text, pattern, cut) for pattern in (_TOKEN, TOKEN))
    return [each for each in made if each is not None]


def _patched(text: str, pattern: re.Pattern[str], cut: bool) -> str | None:
    parts, begun, done, bracket = list[str](), 0, 0, None
    for bracket in _brackets(text, pattern):
        if bracket.depth != ITEM:
            continue
        if bracket.opens:
            begun = bracket.start
        elif not isinstance(_decoded(item := text[begun : bracket.end], 0)[0], dict | list):
            parts += [text[done:begun], _mended_item(item)]
            done = bracket.end
    if not cut:
        return "".join([*parts, text[done:]])
    is_cut = bracket is not None and bracket.depth - (not bracket.opens) >= ITEM and text[begun] == "{"
    return "".join([*parts, text[done:begun], json.dumps(text[begun:]), "]}"]) if is_cut else None


def _mended_item(item: str) -> str:
    """An item in strict JSON, if it can be read and no text in it holds a raw line break; else a text."""
    found = lenient_at(item, 0)
    is_broken = any("\n" in (token["string"] or "") for token in TOKEN.finditer(item))
    is_read = found is not None and found[1] == len(item) and not is_broken
    return json.dumps(found[0] if found is not None and is_read else item)


def _ended(texts: Iterable[str], name: str) -> object:
    """An object whose text ends after a whole item, with the brackets that it lacks."""
    return _read((f"{text.rstrip().rstrip(',')}{end}" for text in texts for end in ENDS), name)


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
