"""Actions in text: after a label such as ``Action:``, between tags, or in fences."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from coevo.models.answers.extent import ActionKind, cleaned, extent, kind_of
from coevo.models.answers.observations import observed
from coevo.models.answers.spans import Span, Whole, fence_at, fenced, fences
from coevo.records.lenient import value_at

_DECORATION = r"^[ \t>#*_\-]*"
_BEFORE = rf"{_DECORATION}?(?P<marks>[*_]{{1,4}})?"
_AFTER = (
    r"(?:[ \t]{0,4}\d{0,4}(?:[ \t]{0,4}(?P=marks)[ \t]{0,4}[:：]"
    r"|[*_ \t]{0,8}[:：](?:[*_]{1,4}(?=[ \t]|$)|[ \t]*(?P=marks))?)[ \t]*|[*_ \t]{0,8}(?<=[ \t])[\-–—][ \t]+|[*_ \t]*$)"
)
"""Text around a label. The marks before it end it, behind the colon at the latest; others there are the action's."""
_ACTION = re.compile(
    rf"{_BEFORE}(?:(?:next|final|chosen|selected|best|my|the)[ \t]+)*action(?:[ \t]+to[ \t]+take)?{_AFTER}",
    re.IGNORECASE | re.MULTILINE,
)
_INPUT = re.compile(rf"{_BEFORE}action[ \t]+input{_AFTER}", re.IGNORECASE | re.MULTILINE)
_FINAL = re.compile(rf"{_BEFORE}final answer{_AFTER}", re.IGNORECASE | re.MULTILINE)
_OTHER = re.compile(
    rf"{_DECORATION}(?:thoughts?|think|reasoning|reflection|plan|explanation|rationale|analysis|final answer"
    r"|action input)[ \t]{0,4}\d{0,4}[*_ \t]{0,8}[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_WITHIN = re.compile(r"(?<=[.!?;)\]])[ \t]+(?P<marks>[*_]{0,4})action[*_]{0,4}:(?P=marks)?[ \t]*", re.IGNORECASE)
"""Label behind the end of a sentence; elsewhere in a line, it is part of the sentence."""
_OPENING = re.compile(r"(?:`{3,}|~{3,})[\w+\-.]*[ \t]*\n\s*")
"""Beginning of a fence, up to its text."""
_LINE_BREAK = re.compile("\n")
_THOUGHT = re.compile(r"(?:^|\n)[ \t>#*_\-]*thoughts?[ \t]{0,4}\d{0,4}[*_ \t]{0,8}[:：][*_]*", re.IGNORECASE)
TAGS = ("action", "act", "answer", "command", "execute", "execute_bash", "execute_ipython", "code")
"""Names of tags around actions in common prompts."""
_TAG = re.compile(rf"<\|?(?:{'|'.join(TAGS)})\|?>", re.IGNORECASE)
PROSE_LINES = 3
"""Maximum number of lines of prose between a name and its fence."""
_BARE = re.compile(r"[A-Za-z_][\w.\-]*")
_FINAL_ANSWER_NAMES = re.compile(r"(?:final[_\-]?)?answer|finish|submit|respond", re.IGNORECASE)
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


@dataclass(frozen=True, slots=True)
class Found:
    """An action in an answer.

    Attributes:
        start: position of its label or tag.
        end: position after it.
        action: its text.
        closed: True if its form shows that it is complete, so that a cut answer still holds all of it.
        argument: text after ``Action Input:``, or payload of a bare name; None without one.
        unclear: True if code follows that may be a part of it.
    """

    start: int
    end: int
    action: str
    closed: bool
    argument: str | None = None
    unclear: bool = False


def labelled(text: str, whole: Whole) -> list[Found]:
    """Actions after a label at the beginning of a line, else after one behind a sentence, in order."""
    labels = _outside(_ACTION, text, whole) or _outside(_WITHIN, text, whole)
    stops = [*(label.start() for label in labels[1:]), len(text)]
    every = sorted([*zip(labels, stops, strict=False), *_leading(text)], key=lambda each: each[0].start())
    found = list[Found]()
    for label, stop in every:
        since = found[-1].end if found else 0
        each = _with_payload(text, label, _after(text, label, stop, whole), stop, whole, since)
        if label.start() not in whole or (label.start() >= since and each.argument):
            found.append(each)
    return [each for each in found if each.action]


def _leading(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Labels at the beginning of a fence, and the end of its text: the fence holds the whole action."""
    for span in fences(text):
        opening = _OPENING.match(text, span.start)
        label = None if opening is None else _ACTION.match(text, opening.end())
        if label is not None and span.closed:
            yield label, text.rfind("\n", 0, span.end)


def tagged(text: str, names: Sequence[str], whole: Whole) -> list[Found]:
    """Actions between tags with one of these names, in order; one that is not closed holds none."""
    found = [found for name in names for found in _with_tag(text, name, whole)]
    return sorted(found, key=lambda each: each.start)


def in_fences(text: str) -> list[Found]:
    """Contents of code fences, in order; an empty one holds none."""
    every = (Found(span.start, span.end, fenced(text, span), span.closed) for span in fences(text))
    return [found for found in every if found.action.strip()]


def plain(text: str, whole: Whole) -> list[Found]:
    """A whole answer up to the first invented observation; one at its beginning is the action itself."""
    begin = len(text) - len(text.lstrip())
    stop = observed(text, begin + 1, len(text), whole)
    action = unlabelled(text[:stop])
    return [Found(0, stop, action, False)] if action else []


def has_label(text: str) -> bool:
    """Report whether a text holds a label or a tag of an action."""
    return any(pattern.search(text) is not None for pattern in (_ACTION, _WITHIN, _TAG))


def thought_before(text: str, start: int) -> str:
    """Last labelled thought before an action."""
    labels = list(_THOUGHT.finditer(text, 0, start))
    return text[labels[-1].end() : start].strip().strip("*").strip() if labels else ""


def _outside(pattern: re.Pattern[str], text: str, whole: Whole) -> list[re.Match[str]]:
    return [mark for mark in pattern.finditer(text) if mark.start() not in whole]


def _after(text: str, label: re.Match[str], last: int, whole: Whole) -> Found:
    stop = _stop(text, label.end(), last, whole)
    taken = extent(text, label.end(), stop)
    given = _INPUT.match(text, stop)
    if given is None:
        return Found(label.start(), taken.end, cleaned(_untagged(taken.text)), taken.closed, unclear=taken.unclear)
    argument = extent(text, given.end(), _stop(text, given.end(), last, whole))
    return Found(label.start(), argument.end, cleaned(taken.text), argument.closed, cleaned(argument.text))


def _with_payload(text: str, label: re.Match[str], found: Found, last: int, whole: Whole, since: int) -> Found:
    """An action with the payload of its bare name, if it is one that has a payload."""
    if found.argument is not None or found.closed or not takes_payload(found.action):
        return found
    stop = _stop(text, label.end(), last, whole)
    final = _FINAL.match(text, stop) if takes_answer(found.action) else None
    if final is not None:
        payload: Payload | None = answer_at(text, final.end(), _stop(text, final.end(), last, whole))
    elif (around := fence_around(text, label.start())) is not None:
        payload = payload_within(text, around, found.end, stop)
    else:
        payload = payload_behind(text, found.end, stop) or payload_before(text, since, label.start())
    if payload is None:
        return found
    action = "" if payload is MISSING else found.action
    return Found(found.start, max(payload.end, found.end), action, payload.closed, payload.text)


def _stop(text: str, start: int, last: int, whole: Whole) -> int:
    """Position of the next label or invented observation; ``last`` at the latest."""
    label = next((at for at in _line_starts(text, start, last, whole) if _begins(text, at)), last)
    return observed(text, start, label, whole)


def _begins(text: str, at: int) -> bool:
    end = text.find("\n", at)
    line = text[at : end if end >= 0 else len(text)]
    return any(label.match(line) for label in (_ACTION, _OTHER))


def _line_starts(text: str, start: int, last: int, whole: Whole) -> Iterator[int]:
    for mark in _LINE_BREAK.finditer(text, start, last):
        if mark.end() not in whole:
            yield mark.end()


def _untagged(action: str) -> str:
    inner = tagged(action, TAGS, Whole(()))
    return inner[-1].action if inner and inner[0].start == 0 else action


def _with_tag(text: str, name: str, whole: Whole) -> Iterator[Found]:
    """Actions in one kind of tag: ``<name>...</name>``, or ``<|name|>...<|end|>``."""
    marks = re.compile(rf"(?P<open><\|? ?{name} ?\|?>)|</ ?{name} ?>|<\|/?(?:end|{name})\|>", re.IGNORECASE)
    for mark, following in pairwise((*_outside(marks, text, whole), None)):
        assert mark is not None
        action = unlabelled(text[mark.end() : following.start()]) if following is not None else ""
        if mark["open"] and following is not None and not following["open"] and action:
            yield Found(mark.start(), following.end(), action, True)


def unlabelled(text: str) -> str:
    """An action without a label, a fence and marks around it."""
    label = _ACTION.match(text.strip())
    action = text.strip()[label.end() :] if label else text
    return cleaned(extent(action, 0, len(action)).text if action.strip().startswith(("```", "~~~")) else action)


def takes_payload(name: str) -> bool:
    """Report whether an action is a bare name, which a payload may belong to."""
    return _BARE.fullmatch(name) is not None


def takes_answer(name: str) -> bool:
    """Report whether a final answer is the payload of an action."""
    return _FINAL_ANSWER_NAMES.fullmatch(name) is not None


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
    is_named = text[start:stop].lstrip("`~")[:1].isalpha()
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
