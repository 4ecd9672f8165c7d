"""Parts of an answer that are read whole: fences, here-documents, JSON and quotes."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from coevo.records.lenient import value_at

_FENCE = re.compile(r"(?!(?<=[\"'])`{3,}[\"'])`{3,}|(?<!\S)~{3,}(?=[\w+\-.]*[ \t]*$)", re.MULTILINE)
"""Mark of a fence, which is not all of a quoted text."""
_MARK = re.compile(r"`+|~+")
_MARGIN = re.compile(r"[ \t>]*")
_AFTER = re.compile(r"[ \t.,:;!*_]*$", re.MULTILINE)
"""Text before a mark that ends a fence, or behind it, in its line."""
_LAST_MARGIN = re.compile(r"\n[ \t>]*\Z")
_MAX_MARGIN = 400
_INNER_MARKS = 64
"""Maximum number of marks within the code of a fence."""
_PYTHON = re.compile(r"[ \t]*(?:python3?|py|ipython)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_PYTHON_DATA = re.compile(
    r"\#[^\n]*+|(?P<quote>\"{3}|'{3})(?:\\.|(?!(?P=quote)).)*+(?:(?P=quote)|(?P<open>\\?\Z))"
    r"|\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?",
    re.DOTALL,
)
"""Comments and texts of Python; one in three quotation marks may hold lines, and be open."""
_OPENS_TEXT = re.compile(r"(?<![\w\\])[\"']")
HEREDOC = re.compile(r"(?<!<)<<-?[ \t]*(?P<quote>['\"]?)(?P<word>[A-Za-z_]\w*)(?P=quote)")
"""Beginning of a here-document, of which a line may hold several; three such signs precede a word."""
QUOTED = r"(?<![\w\\])(?:\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|`[^`\n]++`)"
"""Pattern of quoted text within a line; an apostrophe in a word opens none."""
_QUOTED = re.compile(QUOTED)
_QUOTES = re.compile(r"'(?:[^'\\\n]|\\.|'')*+'|\"(?:[^\"\\\n]|\\.)*+\"")
"""Quoted text of SQL or JSON within a line."""
_NEXT_ROW = re.compile(
    r",?[ \t]*\n[ \t]*(?=[\[({]\s*(?:[\"'\[({\])}]|[+\-]?\d[\d.]*+(?![ \t]*[a-z])|(?:null|none|true|false)\b"
    r"|[a-z_.]+\([\"'\d]))",
    re.IGNORECASE,
)
"""Text between a value in brackets and the next one, which begins with a value and is no remark."""
_SQL_COMMENT = r"--[^\n]*+|\#[^\n]*+|/\*.*?(?:\*/|\Z)|`[^`]*+(?:`|\Z)"
_SQL_DATA = tuple(
    re.compile(rf"{_SQL_COMMENT}|'(?:{text})*+(?:'|(?P<open>\Z))|\"[^\"]*+(?:\"|\Z)", re.DOTALL)
    for text in (r"[^'\\]|\\.?", "[^']")
)
"""Comments and quoted text of SQL, in which a backslash escapes a quotation mark, or does not: both are in use."""
_SHELL_DATA = re.compile(
    r"\\.|(?<![^\s;(|&])\#[^\n]*+|'[^']*+(?:'|(?P<single>\Z))|\"(?:[^\"\\]|\\.?)*+(?:\"|(?P<double>\Z))", re.DOTALL
)
"""Escaped characters, comments and quoted text of a shell."""
_OBJECT = re.compile(r"\{(?=\s*[\"'])")
_FAILURES = 64
"""Maximum number of broken objects in an answer behind which others are looked for: each may be read to the end."""


@dataclass(frozen=True, slots=True)
class Span:
    """Part of a text, from ``start`` to ``end``; ``closed`` is False if the text ends within it."""

    start: int
    end: int
    closed: bool = True


class Whole:
    """Parts of a text that are read whole: what stands in them is neither a label nor an observation."""

    def __init__(self, spans: Iterable[Span]) -> None:
        merged = list[Span]()
        for span in sorted(spans, key=lambda span: (span.start, -span.end)):
            if not merged or span.end > merged[-1].end:
                merged.append(span)
        self._starts, self._ends = [span.start for span in merged], [span.end for span in merged]

    def __contains__(self, position: int) -> bool:
        index = bisect_right(self._starts, position) - 1
        return index >= 0 and self._starts[index] < position < self._ends[index]


def protected(text: str, calls: Iterable[Span] = ()) -> Whole:
    """Fences and here-documents that end, JSON objects, and calls."""
    return Whole(span for span in (*fences(text), *heredocs(text), *objects(text), *calls) if span.closed)


def quoted(text: str) -> list[Span]:
    """Quotes within a line."""
    return [Span(*mark.span()) for mark in _QUOTED.finditer(text)]


@lru_cache(maxsize=8)
def objects(text: str) -> tuple[Span, ...]:
    """JSON objects, also nearly JSON, without those inside of others: marks of a template in their strings are data."""
    spans, end, failed = list[Span](), 0, 0
    for mark in _OBJECT.finditer(text):
        if mark.start() < end or failed == _FAILURES:
            continue
        found = value_at(text, mark.start())
        if found is None:
            failed += 1
        else:
            end = found[1]
            spans.append(Span(mark.start(), end))
    return tuple(spans)


def fences(text: str) -> list[Span]:
    """Code fences, with their marks; the last one may not be closed."""
    data = Whole(each for each in heredocs(text) if each.closed)
    marks, spans, end = [mark for mark in _FENCE.finditer(text) if mark.start() not in data], list[Span](), 0
    for index, opening in enumerate(marks):
        if opening.start() >= end and not _is_quoted(text, opening, end):
            closing = _closing(text, opening, (marks[at] for at in range(index + 1, len(marks))))
            end = len(text) if closing is None else closing.end()
            spans.append(Span(opening.start(), end, closing is not None))
    return spans


def _closing(text: str, opening: re.Match[str], marks: Iterator[re.Match[str]]) -> re.Match[str] | None:
    """The mark that ends a fence: it is as long, and begins or ends its line; else, the first one that is as long.

    A mark in a text of the code ends none.
    """
    first = None
    is_python = _PYTHON.match(text, opening.end()) is not None
    for mark in islice((each for each in marks if each[0].startswith(opening[0])), _INNER_MARKS):
        ends_line = _AFTER.match(text, mark.end()) is not None
        if (is_python and _in_long_text(text[opening.end() : mark.start()])) or (
            not ends_line and _in_line_text(text, opening.end(), mark.start())
        ):
            continue
        if ends_line or _begins_line(text, opening, mark):
            return mark
        first = first or mark
    return first


def _begins_line(text: str, opening: re.Match[str], mark: re.Match[str]) -> bool:
    """Report whether no code stands before a mark in its line; a fence may be a part of a line."""
    line = text.rfind("\n", opening.end(), mark.start()) + 1
    return line == 0 or _MARGIN.fullmatch(text, line, mark.start()) is not None


def _in_long_text(code: str) -> bool:
    """Report whether code of Python ends within a text in three quotation marks."""
    return any(each["open"] is not None for each in _PYTHON_DATA.finditer(code))


def _in_line_text(text: str, start: int, position: int) -> bool:
    """Report whether a text or a comment is open at a position in its line, which begins at ``start`` or behind it."""
    line = text[max(start, position - _MAX_MARGIN, text.rfind("\n", start, position) + 1) : position]
    return line.lstrip().startswith(("#", "--")) or _OPENS_TEXT.search(_QUOTED.sub("", line)) is not None


def _is_quoted(text: str, mark: re.Match[str], start: int) -> bool:
    """Report whether a mark stands in a text of its line, which ends there."""
    if mark.start() == 0 or text[mark.start() - 1] == "\n" or not _in_line_text(text, start, mark.start()):
        return False
    line = text[mark.end() : mark.end() + _MAX_MARGIN].partition("\n")[0]
    return '"' in line or "'" in line


def is_ended(text: str, span: Span) -> bool:
    """Report whether a fence ends, whatever follows: at the end of the text, its last mark may be data of a line."""
    last = len(text[: span.end].rstrip(" \t.,:;!*_").rstrip("`~"))
    return span.closed and (text[span.end :].strip(" \t") != "" or not _in_line_text(text, span.start, last))


def fence_at(text: str, start: int, stop: int) -> Span | None:
    """Fence that begins at a position and ends at ``stop`` at the latest; None if there is none."""
    if _FENCE.match(text, start, stop) is None:
        return None
    first = fences(text[start:stop])[0]
    return Span(start, start + first.end, first.closed)


def fenced(text: str, span: Span) -> str:
    """Content of a fence, without the name of its language."""
    mark = _MARK.match(text, span.start)
    size = 0 if mark is None else mark.end() - span.start
    inner = text[span.start + size : span.end].rstrip(text[span.start]) if span.closed else text[span.start + size :]
    language, line_break, rest = inner.partition("\n")
    code = rest if line_break and re.fullmatch(r"[\w+\-.]*", language.strip()) else inner
    margin = text[max(0, span.start - _MAX_MARGIN) : span.start].rpartition("\n")[2]
    return without_margin(_LAST_MARGIN.sub("", code).strip("\n"), margin)


def without_margin(text: str, margin: str) -> str:
    """Text of a fence without the blanks, or the marks of a quotation, before its mark, where all lines have them."""
    lines = text.split("\n")
    if not margin or margin.strip(" \t>") or not all(line.startswith(margin) for line in lines if line.strip(" \t>")):
        return text
    return "\n".join(line[len(margin) :] for line in lines)


def heredocs(text: str) -> list[Span]:
    """Here-documents, with the line that opens one or more; the last one may not be closed."""
    found, position = list[Span](), 0
    while (opening := HEREDOC.search(text, position)) and (line_end := text.find("\n", opening.end())) >= 0:
        is_closed, position = True, line_end
        for each in HEREDOC.finditer(text, opening.start(), line_end):
            closing = re.compile(rf"^[ \t]*{re.escape(each['word'])}[ \t]*(?:$|(?=```))", re.MULTILINE)
            end = closing.search(text, position) if is_closed else None
            is_closed, position = end is not None, end.end() if end else len(text)
        found.append(Span(opening.start(), position, is_closed))
    return found


def without_data(query: str) -> str:
    """A query without its comments, and without what its quotes hold."""
    return _SQL_DATA[0].sub(lambda data: " " if data[0].startswith(("--", "#", "/*")) else "''", query).rstrip()


def ends_in_quotes(query: str) -> bool:
    """Report whether a query ends within quotes."""
    return all(any(each["open"] is not None for each in data.finditer(query)) for data in _SQL_DATA)


def data_of(text: str, is_sql: bool) -> tuple[Whole, ...]:
    """Comments and quoted text of code, by each of the rules that it may follow; here-documents count as such."""
    if is_sql:
        return tuple(Whole(Span(*each.span()) for each in data.finditer(text)) for data in _SQL_DATA)
    return (Whole(Span(*each.span()) for each in _SHELL_DATA.finditer(text)),)


def unquoted(line: str, mark: str) -> tuple[str, str]:
    """A line of a shell without its comment and quoted text, and the quotation mark that is open behind it.

    Args:
        line: the line.
        mark: quotation mark that is open before it; empty if none is.
    """
    ends = [each.lastgroup for each in _SHELL_DATA.finditer(mark + line)]
    return _SHELL_DATA.sub(" ", mark + line), {"single": "'", "double": '"'}.get(str(ends[-1]), "") if ends else mark


def bracketed(text: str, start: int, stop: int) -> int | None:
    """End of a value in brackets, and of those that begin the next lines; None without one, or if one does not end."""
    end, last = _value_in_brackets(text, start, stop), None
    while end is not None and end != last:
        last = end
        following = _NEXT_ROW.match(text, end, stop)
        is_row = following is not None and text[following.end()] == text[start]
        end = end if not is_row or following is None else _value_in_brackets(text, following.end(), stop)
    return end


def _value_in_brackets(text: str, start: int, stop: int) -> int | None:
    """End of a value in brackets at a position, or None."""
    if text[start] not in "[({":
        return None
    depth, position = 0, start
    while position < stop:
        quoted = _QUOTES.match(text, position, stop) if text[position] in "'\"" else None
        if quoted is not None:
            position = quoted.end()
            continue
        depth += (text[position] in "[({") - (text[position] in "])}")
        position += 1
        if depth == 0:
            return position
    return None
