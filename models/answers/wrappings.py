"""Marks around an action that are no part of it: emphasis, quotes, brackets, tags, LaTeX, and a field of JSON."""

import re
from collections.abc import Sequence

from coevo.models.answers.answer_page import inner_pattern, label_pattern, plain_shape
from coevo.models.answers.spans import Span, Whole, objects
from coevo.records.lenient import value_at

_BOXED = re.compile(r"\\boxed\s*\{")
_LATEX = re.compile(r"\\(?:text|mathrm|mathbf|textbf|texttt)\s*\{([^{}]*)\}")
_WRAPPED = tuple(
    re.compile(rf"{pattern}[.。]?")
    for pattern in (
        r"(?P<mark>[*_]{1,3})(?P<inner>(?:(?!(?P=mark)).)+)(?P=mark)",
        r"[‘“«《「『【](?P<inner>[^‘“«《「『【’”»》」』】]+)[’”»》」』】]",
        r"<(?P<tag>b|i|em|strong|code|act|action|command)>(?P<inner>[^<>]+)</(?P=tag)>",
        r"\\\((?P<inner>.+)\\\)",
        r"\$?\\(?:text|mathrm|mathbf|textbf|texttt)\s*\{(?P<inner>[^{}]*)\}\$?",
        r"\[(?P<inner>[A-Za-z][\w '/\-]*)\]",
    )
)
"""Marks on both sides of an action."""
_CLOSING = re.compile(r"</(?:act|action|answer|command)>\Z", re.IGNORECASE)
"""Tag that ends an action in a form with a label, where no tag begins it."""
_EMPHASIS = re.compile(r"(?<![*_\w])([*_])(?=\w)")
"""Mark directly before a label, which ends behind the action."""
_FIELD = re.compile(r"([\"'])[\w ]+\1 *:\Z")
"""Label that is the name of a field, of which a quotation mark begins the value."""
_END_OF_FIELD = re.compile(r"(?<!\\)([\"'])\s*(?:,|\}|\Z)")
_MAX_AROUND = 4
"""Maximum number of marks around each other."""


def without_label_marks(text: str, label: str) -> str:
    """A line without the second half of the marks that begin before its label, or the marks of code around it.

    Args:
        text: the line behind its label.
        label: the label with the marks around it.
    """
    if _FIELD.search(label.rstrip(" ")) and text[:1] in ("'", '"'):
        return _field(text)
    for mark, closing in (("`", "`"), ('"', '"'), ('"', "”"), ("'", "'"), ("'", "’")):
        if mark in label and text.endswith(closing) and text.count(closing) % 2 == 1:
            return text[:-1].rstrip()
    begun = _EMPHASIS.search(label)
    if begun is not None and label.count(begun[1]) % 2 == 1 and text.endswith(begun[1]) and text.count(begun[1]) == 1:
        return text[:-1].rstrip()
    return text.strip("`") if text.startswith("``") and text.endswith("``") else text


def _field(text: str) -> str:
    """Value of a field of JSON that begins with its quotation mark, up to the one before the next field."""
    found = next((each for each in _END_OF_FIELD.finditer(text, 1) if each[1] == text[0]), None)
    return text if found is None else text[: found.end(1)]


def unboxed(text: str) -> tuple[str, int] | None:
    """Content of a box of LaTeX, and the position behind its line; None if there is none."""
    opening = _BOXED.search(text)
    if opening is None:
        return None
    depth = 1
    for position in range(opening.end(), len(text)):
        depth += (text[position] == "{") - (text[position] == "}")
        if depth == 0:
            inner = _LATEX.sub(r"\1", text[opening.end() : position])
            return inner.strip().strip("$"), position + 1 + len(text[position + 1 :].partition("\n")[0])
    return None


def boxed_at(text: str, start: int) -> bool:
    """Report whether a box begins at a position."""
    return _BOXED.match(text, start) is not None


def unwrapped(action: str, label: str, examples: Sequence[str]) -> str:
    """An action of one line without the marks around it, unless the form's examples begin with the same mark.

    Args:
        action: the action.
        label: label or tag of the form, which may name the field of JSON that holds the action.
        examples: actions that the form shows.
    """
    for _ in range(_MAX_AROUND):
        if not action[:1].isalnum() and any(each[:1] == action[:1] for each in examples):
            break
        inner = _inner(action, label)
        if inner == action:
            break
        action = inner
    return action.removesuffix("。").strip("\u200b\ufeff ")


def _inner(action: str, label: str) -> str:
    found = next((each for mark in _WRAPPED if (each := mark.fullmatch(action)) is not None), None)
    if found is not None:
        return found["inner"].strip()
    box = unboxed(action) if boxed_at(action, action[:1] == "$") else None
    if box is not None and not action[box[1] :]:
        return box[0]
    if action.startswith("{"):
        field = field_of(action, Span(0, len(action)), label)
        return field or action
    return _CLOSING.sub("", action).rstrip() if not action.startswith("<") else action


def field_of(text: str, span: Span, label: str) -> str | None:
    """Text of the field with a label's name in a JSON object that takes up a span.

    It is empty where the field holds none, and None without such a field.
    """
    found = value_at(text, span.start)
    if found is None or found[1] != span.end or not isinstance(found[0], dict):
        return None
    name = label.lower().replace(" ", "_")
    named = [value for key, value in found[0].items() if str(key).lower().replace(" ", "_") == name]
    value = named[0].strip() if named and isinstance(named[0], str) else ""
    return (value if "\n" not in value else "") if named else None


def is_labelled(text: str, label: str, data: Whole | None = None) -> bool:
    """Report whether a text holds a label outside of its data, at the beginning of a line or behind a sentence."""
    shape = plain_shape(text)
    every = (found for each in (label_pattern(label), inner_pattern(label)) for found in each.finditer(shape))
    return any(data is None or found.end() - 1 not in data for found in every)


def from_object(text: str, label: str) -> str:
    """An answer without a label whose first object has a field of its name, as a line with that label; else as it is.

    What follows the object is kept: it may show that the object is whole.
    """
    for span in () if is_labelled(text, label, Whole(objects(text))) else objects(text):
        value = field_of(text, span, label)
        if value is not None:
            said = f"{label}: {value}" if value else ""
            return f"{text[: span.start]}\n{said}\n{text[span.end :]}"
    return text
