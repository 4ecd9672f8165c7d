"""An answer to a question about a table: its text as rows, and whether they are the rows that were asked for."""

from collections.abc import Sequence
from math import isclose

from coevo.envs.lifelong.sql_database import SqlRow, Value

MAX_ANSWER_CHARS = 20_000
"""Most characters of an answer that is read."""
TOLERANCE = 1e-6
"""Difference of two numbers that count as equal, relative and absolute."""
_OPENING, _CLOSING, _QUOTES = "([", ")]", "'\""


def answers(text: str, rows: Sequence[SqlRow], ordered: bool) -> bool:
    """True if a text names exactly these rows: as a list of tuples, or one row without brackets.

    Args:
        text: the answer, such as ``[('pear', 3), ('fig', 7)]`` or ``42``.
        rows: the rows that were asked for.
        ordered: whether their order counts.
    """
    given = _rows_of(text)
    if given is None or len(given) != len(rows):
        return False
    if ordered:
        return all(_same_row(one, other) for one, other in zip(given, rows, strict=True))
    left = list(rows)
    for one in given:
        match = next((index for index, other in enumerate(left) if _same_row(one, other)), None)
        if match is None:
            return False
        del left[match]
    return True


def _rows_of(text: str) -> list[list[str]] | None:
    """Elements of each row as they are written; None for a text that is too long, or whose brackets do not fit."""
    text = text.strip().replace("Decimal(", "").replace("')", "'") if "Decimal(" in text else text.strip()
    if len(text) > MAX_ANSWER_CHARS:
        return None
    rows, loose, depth, index = list[list[str]](), list[str](), 0, 0
    while index < len(text):
        letter = text[index]
        if letter in _OPENING:
            depth += 1
            rows += [[]] if letter == "(" else []
            index += 1
        elif letter in _CLOSING:
            depth -= 1
            index += 1
        elif letter in ", \n\t":
            index += 1
        else:
            element, index = _element(text, index)
            (rows[-1] if depth and rows else loose).append(element)
        if depth not in (0, 1, 2):
            return None
    if depth:
        return None
    return rows if rows else [loose] if loose else []


def _element(text: str, start: int) -> tuple[str, int]:
    """An element with its quotes, and where the text continues."""
    quote, end = text[start], start
    if quote in _QUOTES:
        end = text.find(quote, start + 1)
        while end > 0 and text[end - 1] == "\\":
            end = text.find(quote, end + 1)
        if end > 0:
            return text[start : end + 1], end + 1
        end = start
    while end < len(text) and text[end] not in ",()[]\n":
        end += 1
    return (text[start:end].strip(), end) if end > start else (text[start], start + 1)


def _same_row(given: Sequence[str], row: SqlRow) -> bool:
    return len(given) == len(row) and all(map(_same, given, row))


def _same(given: str, value: Value) -> bool:
    bare = given[1:-1] if len(given) > 1 and given[0] in _QUOTES and given[-1] == given[0] else given
    if value is None:
        return bare.lower() in ("none", "null")
    if isinstance(value, str):
        return value in (given, bare.replace("\\'", "'").replace('\\"', '"'))
    if not isinstance(value, int | float):
        return False  # bytes that an agent has written into a table
    try:
        return isclose(float(bare), value, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    except (ValueError, OverflowError):
        return False
