"""Actions in text: after a label such as ``Action:``, between tags, or in fences."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from coevo.models.answers.extent import cleaned, extent
from coevo.models.answers.observations import observed
from coevo.models.answers.payloads import (
    MISSING,
    Payload,
    answer_at,
    fence_around,
    payload_before,
    payload_behind,
    payload_within,
    takes_answer,
    takes_payload,
)
from coevo.models.answers.spans import Whole, fenced, fences

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
_OPENING = re.compile(r"(?:```|~~~)[\w+\-.]*[ \t]*\n\s*")
"""Beginning of a fence, up to its text."""
_LINE_BREAK = re.compile("\n")
_THOUGHT = re.compile(r"(?:^|\n)[ \t>#*_\-]*thoughts?[ \t]{0,4}\d{0,4}[*_ \t]{0,8}[:：][*_]*", re.IGNORECASE)
TAGS = ("action", "act", "answer", "command", "execute", "execute_bash", "execute_ipython", "code")
"""Names of tags around actions in common prompts."""

_TAG = re.compile(rf"<\|?(?:{'|'.join(TAGS)})\|?>", re.IGNORECASE)


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
    marks = re.compile(rf"(?P<open><\|?{name}\|?>)|</{name}>|<\|/?(?:end|{name})\|>", re.IGNORECASE)
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
