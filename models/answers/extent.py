"""Extent of an action: where the text after a label ends to be the action, and how it is cleaned.

An action is one line, unless its text shows that it continues: a fence, JSON, a here-document, brackets, quotes or
blocks of a shell that close in a later line, a line that ends in an operator, an indented next line, or more lines of
the same SQL or code.
"""

import re
from enum import IntEnum
from typing import NamedTuple

from coevo.models.answers.bare_code import ActionKind, ends_unclear, kind_of, more_of_code, more_of_query
from coevo.models.answers.spans import fence_at, fenced
from coevo.records.lenient import value_at

_HEREDOC = re.compile(r"<<-?[ \t]*['\"]?([A-Za-z_]\w*)")
_ENDS_OPEN = ("\\", "|", "&&", "||", "+", "=")
_PAIRS = (("**", "**"), ("`", "`"), ('"', '"'), ("'", "'"), ("“", "”"), ("__", "__"))
_BLOCK = re.compile(
    r"(?:^|[;&|({]|\b(?:do|then|else)\b)[ \t]*(?:(?P<opens>if|for|while|until|case)|(?P<closes>fi|done|esac))\b"
)
_SENTENCE = re.compile(r"[\w' \-]*\w\.")


class Extent(NamedTuple):
    """Place of an action in an answer.

    Attributes:
        text: the action.
        end: position where it ends.
        closed: True if its own form shows that it is complete.
        unclear: True if code follows that may be a part of it.
    """

    text: str
    end: int
    closed: bool
    unclear: bool = False


class _Trust(IntEnum):
    """Marks that continue an action if a later line closes them; prose may hold each without its other half."""

    NOTHING = 0
    BRACKETS = 1
    ALL = 2


class _Open(NamedTuple):
    """Parts of an action that are open behind a line: a here-document by its word, brackets, quotes, blocks."""

    word: str = ""
    brackets: int = 0
    double: int = 0
    single: int = 0
    quotes: int = 0
    blocks: int = 0

    def after(self, line: str) -> "_Open":
        """Parts that are open behind the next line."""
        heredoc, ends = _HEREDOC.search(line), self.word != "" and line.removeprefix("\t").startswith(self.word)
        word = heredoc[1] if heredoc is not None and not self.word else self.word
        brackets = sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        return _Open(
            "" if ends else word,
            self.brackets + brackets,
            self.double + line.count('"""'),
            self.single + line.count("'''"),
            self.quotes + line.count('"') - line.count('\\"'),
            self.blocks + _blocks(line),
        )

    def is_open(self, trust: _Trust) -> bool:
        """Report whether any part is open."""
        always = self.word != "" or self.double % 2 == 1 or self.single % 2 == 1
        return always or (trust >= _Trust.BRACKETS and self.brackets > 0) or (trust == _Trust.ALL and self._is_loose())

    def closes(self, trust: _Trust) -> bool:
        """Report whether no mark is open that was trusted to close."""
        return (trust < _Trust.BRACKETS or self.brackets <= 0) and not (trust == _Trust.ALL and self._is_loose())

    def _is_loose(self) -> bool:
        return self.quotes % 2 == 1 or self.blocks > 0


def _blocks(line: str) -> int:
    """Number of blocks that a line of a shell opens, less those that it closes; Python's end in a colon."""
    blocks = () if line.rstrip().endswith(":") else _BLOCK.finditer(line)
    return sum(1 if block["opens"] else -1 for block in blocks)


def extent(text: str, start: int, stop: int) -> Extent:
    """Action that begins at ``start`` and ends at ``stop`` at the latest."""
    start += len(text[start:stop]) - len(text[start:stop].lstrip())
    fence = fence_at(text, start, stop)
    if fence is not None:
        return Extent(fenced(text, fence), fence.end, fence.closed)
    found = value_at(text, start) if text[start : start + 1] in ("{", "[") else None
    if found is not None and found[1] <= stop and not text[found[1] : stop].partition("\n")[0].strip(" .`*"):
        return Extent(text[start : found[1]], found[1], True)
    return _of_lines(text, start, stop)


def cleaned(action: str) -> str:
    """An action without quotes, markdown and a sentence's full stop around it."""
    action = action.strip()
    while (inner := _unwrapped(action)) != action:
        action = inner.strip()
    return action[:-1] if _SENTENCE.fullmatch(action) else action


def _of_lines(text: str, start: int, stop: int) -> Extent:
    lines = text[start:stop].split("\n")
    kind = kind_of(lines)
    tried = (_taken(lines, kind, trust) for trust in reversed(_Trust))
    first = kept, closes = next(tried)
    while not closes:
        kept, closes = next(tried)
    # The lines behind a mark that does not close count for the end: a cut answer may lack its other lines.
    end = start + len("\n".join(lines[: first[0]]))
    return Extent("\n".join(lines[:kept]).rstrip(), end, False, ends_unclear(lines, kept, kind))


def _taken(lines: list[str], kind: ActionKind, trust: _Trust) -> tuple[int, bool]:
    """Number of lines of an action, and whether the marks close that continue it."""
    parts, taken = _Open().after(lines[0]), 1
    while taken < len(lines) and (more := 1 if parts.is_open(trust) else _more(lines, taken, kind)):
        for line in lines[taken : taken + more]:
            parts = parts.after(line)
        taken += more
    return taken, parts.closes(trust)


def _more(lines: list[str], taken: int, kind: ActionKind) -> int:
    """Number of lines that continue an action in which nothing is open; 0 if it ends."""
    last, following = lines[taken - 1].rstrip(), lines[taken]
    if following.strip() and last and (last.endswith(_ENDS_OPEN) or following[0] in " \t"):
        return 1
    if kind is ActionKind.TEXT:
        return 0
    return more_of_query(lines, taken) if kind is ActionKind.QUERY else more_of_code(lines, taken)


def _unwrapped(action: str) -> str:
    """An action without one pair of marks around it, or one mark of a quotation before it."""
    body = action.removesuffix(".")
    for left, right in _PAIRS:
        inner = body[len(left) : -len(right)]
        if body.startswith(left) and body.endswith(right) and inner and right not in inner:
            return inner
    return action.removeprefix("> ").removesuffix("**")
