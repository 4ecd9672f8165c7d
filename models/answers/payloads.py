"""Payload of an action that is a bare name: the query, code or answer that stands around its label.

``Action: Operation`` is followed by a fence, by a query without one, or stands in or behind the fence; ``Action:
Answer`` is followed by ``Final Answer: ...``. Names of several words, as in games, have no payload.
"""

import re
from typing import NamedTuple

from coevo.models.answers.bare_code import ActionKind, kind_of
from coevo.models.answers.extent import cleaned, extent
from coevo.models.answers.spans import Span, fence_at, fenced, fences
from coevo.records.lenient import value_at

PROSE_LINES = 3
"""Maximum number of lines of prose between a name and its fence."""
_BARE = re.compile(r"[A-Za-z_][\w.\-]*")
_ANSWERS = re.compile(r"(?:final[_\-]?)?answer|finish|submit|respond", re.IGNORECASE)
"""Names of actions that a final answer belongs to."""
_LINE = re.compile(r"[^\n]*\n?")
_MARK = re.compile(r"[ \t>]*(?=```|~~~)")
_BOXED = re.compile(r"\$*\\boxed\{(?P<inner>.*)\}\$*", re.DOTALL)
_PROSE = re.compile(r"[A-Z][a-z']* +[a-z]|[*_(]*(?:Explanation|Note|Reason)", re.IGNORECASE)
_ANNOUNCES = re.compile(r"\b(?:query|sql|code|command|statement|script|answer)\b[^\n]*:[*_]*$", re.IGNORECASE)
"""Line of prose that announces a payload."""
_BLANK_LINE = re.compile(r"\n[ \t]*(?=\n|\Z)")


class Payload(NamedTuple):
    """A payload.

    Attributes:
        text: its text.
        end: position behind it.
        closed: True if its form shows that it is complete.
    """

    text: str
    end: int
    closed: bool


MISSING = Payload("", 0, False)
"""Payload that is announced, but does not follow: its action is not complete."""


def takes_payload(name: str) -> bool:
    """Report whether an action is a bare name, which a payload may belong to."""
    return _BARE.fullmatch(name) is not None


def takes_answer(name: str) -> bool:
    """Report whether a final answer is the payload of an action."""
    return _ANSWERS.fullmatch(name) is not None


def answer_at(text: str, start: int, stop: int) -> Payload:
    """Final answer behind its label: a fence, JSON, or lines up to a blank one or to a sentence that explains them."""
    start = _content(text, start, stop)
    if start == stop:
        return MISSING
    if (fence := fence_at(text, start, stop)) is not None:
        return Payload(fenced(text, fence), fence.end, fence.closed)
    found = value_at(text, start) if text[start] in "[{" else None
    if found is not None and found[1] <= stop:
        return Payload(text[start : found[1]], found[1], True)
    blank = _BLANK_LINE.search(text, start, stop)
    lines = text[start : blank.start() if blank else stop].split("\n")
    count = next((at for at in range(1, len(lines)) if _PROSE.match(lines[at].strip())), len(lines))
    said = "\n".join(lines[:count])
    return Payload(_unboxed(cleaned(said)), start + len(said), count < len(lines) or blank is not None)


def payload_behind(text: str, start: int, stop: int) -> Payload | None:
    """Payload that follows a name: a fence behind at most a few lines of prose, a query, JSON, or a boxed answer."""
    position, prose, last = start, 0, ""
    while position < stop and prose <= PROSE_LINES:
        line = _LINE.match(text, position, stop)
        if line is None or line.end() == position:
            return None
        if (mark := _MARK.match(text, position, stop)) is not None:
            return _of_fence(text, mark.end(), stop)
        if line[0].strip():
            begun = _content(text, position, stop)
            if prose == 0 and (found := _unfenced(text, begun, stop)) is not None:
                return found
            prose, last = prose + 1, line[0].strip()
        position = line.end()
    return MISSING if prose <= PROSE_LINES and _ANNOUNCES.search(last) else None


def fence_around(text: str, label: int) -> Span | None:
    """Fence that a label stands in; None if it stands in none."""
    return next((each for each in fences(text) if each.start < label < each.end), None)


def payload_within(text: str, around: Span, start: int, stop: int) -> Payload | None:
    """Payload behind a name in the same fence."""
    end = text.rfind("\n", start, around.end) if around.closed else around.end
    inner = text[start : min(max(end, start), stop)].strip()
    return Payload(inner, around.end, around.closed) if inner else None


def payload_before(text: str, since: int, label: int) -> Payload | None:
    """Payload in a fence directly before a label, which begins at ``since`` at the earliest."""
    before = [each for each in fences(text[:label]) if each.closed]
    if not before or before[-1].start < since or text[before[-1].end : label].strip():
        return None
    inner = fenced(text, before[-1])
    return Payload(inner, label, False) if inner.strip() else None


def _content(text: str, start: int, stop: int) -> int:
    """Position of the first character that is no blank; ``stop`` if there is none."""
    return stop - len(text[start:stop].lstrip())


def _of_fence(text: str, start: int, stop: int) -> Payload | None:
    fence = fence_at(text, start, stop)
    if fence is None:
        return None
    inner = fenced(text, fence)
    is_named = text[start + 3 : start + 4].isalpha()
    return Payload(inner, fence.end, fence.closed) if inner.strip() else MISSING if is_named else None


def _unfenced(text: str, start: int, stop: int) -> Payload | None:
    """Query, JSON or boxed answer that begins at a position."""
    if text[start] in "[{":
        found = value_at(text, start)
        ends_line = (
            found is not None and found[1] <= stop and not text[found[1] : stop].partition("\n")[0].strip(" .*`")
        )
        return Payload(text[start : found[1]], found[1], True) if found is not None and ends_line else None
    boxed = text.startswith(("\\boxed{", "$\\boxed{"), start)
    if not boxed and kind_of(text[start:stop].split("\n")) is not ActionKind.QUERY:
        return None
    taken = extent(text, start, stop)
    return None if taken.unclear else Payload(_unboxed(cleaned(taken.text)), taken.end, taken.closed)


def _unboxed(text: str) -> str:
    found = _BOXED.fullmatch(text)
    return text if found is None else found["inner"]
