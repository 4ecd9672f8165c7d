"""Items and fields of an answer whose object cannot be read as a whole: each by itself, so that a flaw costs one.

No item is guessed: each is an object in JSON, or nearly. Whatever stands between two of them is passed over.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from coevo.records.lenient import TOKEN, lenient_at, value_at

MAX_BROKEN, NEAR = 64, 8
"""Most broken items of a list, and braces before it, that are read."""
_ALONE = re.compile(r"\s*(?:```\w*\s*)?(?P<opens>\[)(?=\s*\{)")
"""List without its object, as the whole answer."""
_OPENING = re.compile(r"(?:\s*\{.*\})?[\s`{]*(?:json\s*)?(?:(?:\w+\s*=\s*)?[\w.]+\(\s*)?")
"""Beginning of a line with a list that stands in no object: as the argument of a call, or by itself."""
_BEHIND = re.compile(r"[}\]]\s*[,;，]*\s*\Z")
"""End of the text before an item; within a text that quotes an object there is another one."""
_STRING = "\"'"


class Salvaged(NamedTuple):
    """Parts of an answer that can be read.

    Attributes:
        fields: fields, with the list; an item that cannot be read is its text there.
        whole: True if the list ends.
        readable: number of items that can be read.
    """

    fields: dict[str, Any]
    whole: bool
    readable: int


def salvaged(text: str, name: str) -> Salvaged | None:
    """The last list of this name with an item that can be read, and the fields beside it.

    None stands for an answer without one, for one within another or behind it in the same object, of which nobody knows
    which one is meant, and for a list in a sentence, which may be quoted.
    """
    # The name may lack its quotes, or have those of another alphabet.
    begun = re.compile(rf"(?<![\w\\])[\"'“”]?{re.escape(name)}[\"'“”]?\s*[:=：]\s*(?P<opens>[\[({{])", re.IGNORECASE)
    marks = [*begun.finditer(text)] or [mark for mark in [_ALONE.match(text)] if mark]
    for number, mark in reversed([*enumerate(marks)][-2:]):
        if any(_holds(text, each.start("opens"), mark.start()) for each in marks[max(0, number - NEAR) : number]):
            return None
        items, end, whole = _list(text, mark.start("opens"))
        count = sum(isinstance(item, Mapping) for item in items)
        if count:
            head = _head(text, mark.start())
            if not head and not _OPENING.fullmatch(text, text.rfind("\n", 0, mark.start()) + 1, mark.start()):
                return None
            beside = _fields(head) | (_fields(f"{{{text[end:]}") if whole else {})
            return None if begun.search(head) else Salvaged(beside | {name: items}, whole, count)
    return None


def _holds(text: str, start: int, position: int) -> bool:
    """Report whether the list that begins at a place holds a later place, as far as its end can be told."""
    _, end, whole = _list(text, start)
    return not whole or end > position


def _list(text: str, start: int) -> tuple[list[Any], int, bool]:
    """Items of the list that begins at a place, its end, and whether it ends there.

    An object in place of a list is its only item, or has the items as its values.
    """
    if text[start] == "{":
        found = value_at(text, start)
        if found and _repeats(text[start : found[1]]):
            return [], start, False
        made = found[0] if found else None
        values = list(made.values()) if isinstance(made, dict) else []
        items = values if values and all(isinstance(each, dict) for each in values) else [made]
        return (items, found[1], True) if found else ([], start, False)
    return _items(text, start + 1, "]" if text[start] == "[" else ")")


def _items(text: str, position: int, bracket: str) -> tuple[list[Any], int, bool]:
    items, broken, since = list[Any](), 0, None
    end = re.compile(rf"[{{{re.escape(bracket)}]")
    while broken < MAX_BROKEN and (mark := end.search(text, position)):
        position = mark.end()
        found = _item(text, mark.start()) if mark[0] == "{" and _begins(text, mark.start(), since) else None
        if found is not None:
            items += [found[0]] if since is None else [text[since : mark.start()].strip(" \n,"), found[0]]
            position, since = found[1], None
        elif mark[0] == "{":
            since, broken = mark.start() if since is None else since, broken + 1
        elif since is None or _closes(text, mark.start()):
            return items + ([] if since is None else [text[since : mark.start()].strip()]), position, True
    return items + ([] if since is None else [text[since:]]), len(text), False


def _item(text: str, start: int) -> tuple[Any, int] | None:
    """The item that begins at a place, or its text where a text in it holds a raw line break, and its end."""
    found = value_at(text, start)
    if found is None:
        return None
    written = text[start : found[1]]
    is_broken = any("\n" in (token["string"] or "") for token in TOKEN.finditer(written)) or _repeats(written)
    return (written if is_broken else found[0]), found[1]


def _repeats(text: str) -> bool:
    """Report whether an object names a field twice: nobody knows which one is meant."""
    names, open_names = [token for token in TOKEN.finditer(text) if token.lastgroup not in ("blank", "comment")], []
    for token, following in pairwise(names):
        if token.lastgroup == "opens":
            open_names.append(set[str]())
        elif token.lastgroup == "closes" and open_names:
            open_names.pop()
        elif open_names and following.lastgroup == "colon":
            name = token[0].strip(_STRING)
            if name in open_names[-1]:
                return True
            open_names[-1].add(name)
    return False


def _begins(text: str, start: int, since: int | None) -> bool:
    """Report whether an item may begin at a place, and not within the text of the broken one that began before."""
    return since is None or "}" in text[since:start] or _BEHIND.search(text, since, start) is not None


def _closes(text: str, end: int) -> bool:
    """Report whether a bracket behind a broken item ends the list: it follows the end of an object."""
    return text[max(0, end - 80) : end].rstrip().endswith(("}", "},"))


def _head(text: str, end: int) -> str:
    """Text of an object from its brace to a place in it; empty if no brace before the place is open there."""
    braces = [brace.start() for brace in re.finditer(r"\{", text[:end])]
    for brace in reversed(braces[-NEAR:]):
        kinds = [token.lastgroup for token in TOKEN.finditer(text, brace, end)]
        if kinds.count("opens") == kinds.count("closes") + 1:
            return text[brace:end]
    return ""


def _fields(text: str) -> dict[str, Any]:
    """Fields of an object that can be read, up to its end; none that is named twice."""
    found: list[tuple[str, Any]] = list(_named(text))
    counts = Counter(name for name, _ in found)
    return {name: value for name, value in found if counts[name] == 1}


def _named(text: str) -> Iterator[tuple[str, Any]]:
    tokens = [token for token in TOKEN.finditer(text) if token.lastgroup not in ("blank", "comment")]
    depth = 0
    for place, (token, following) in enumerate(pairwise(tokens)):
        depth += (token.lastgroup == "opens") - (token.lastgroup == "closes")
        if depth <= 0:
            return
        if depth != 1 or token.lastgroup not in ("opens", "comma") or following.lastgroup not in ("string", "value"):
            continue
        rest = tokens[place + 2 : place + 5]
        if len(rest) > 1 and rest[0].lastgroup == "colon" and (value := _value(text, rest[1:])) is not None:
            yield following[0].strip(_STRING), value[0]


def _value(text: str, tokens: list[re.Match[str]]) -> tuple[Any] | None:
    """Value at the first of two tokens, which the second one ends; None if it cannot be read."""
    first, *after = tokens
    if first.lastgroup == "opens":
        found = value_at(text, first.start())
        return None if found is None else (found[0],)
    ends = not after or after[0].lastgroup in ("comma", "closes")
    made = lenient_at(f"[{first[0]}]", 0) if ends and first.lastgroup in ("string", "value") else None
    return None if made is None or not isinstance(made[0], list) else (made[0][0],)
