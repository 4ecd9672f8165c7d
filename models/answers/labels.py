"""Actions in text whose form no environment names: after a label such as ``Action:``, between tags, or in fences.

Labels, and what follows them, are found as in the labelled forms; only the names of actions are not known here.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from coevo.models.answers.answer_page import Page, PagePart, inner_pattern, label_pattern, plain_shape
from coevo.models.answers.extent import cleaned, extent
from coevo.models.answers.label_payloads import MISSING, final_answer, is_template, payload_of_bare_name
from coevo.models.answers.observations import observed
from coevo.models.answers.spans import Whole, fenced, fences, is_ended
from coevo.models.answers.wrappings import without_label_marks

LABEL, INPUT, FINAL = "Action", "Action Input", "Final Answer"
"""Labels in common prompts: of an action, of its argument, and of the answer that ends a task."""
_OPENING = re.compile(r"(?:`{3,}|~{3,})[\w+\-.]*[ \t]*\n\s*")
"""Beginning of a fence, up to its text."""
_NAMED_OPENING = re.compile(r"(?:`{3,}|~{3,})[ \t]*[a-z]\w*[ \t]*$", re.IGNORECASE | re.MULTILINE)
_OUTPUT_OPENING = re.compile(
    r"(?:`{3,}|~{3,})[ \t]*(?:text|txt|plain(?:text)?|output|console|log|json|none)[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
"""Beginning of a fence that names a language, or a format of output."""
_THOUGHT = re.compile(r"(?:^|\n)[ \t>#*_\-]*thoughts?[ \t]{0,4}\d{0,4}[*_ \t]{0,8}[:：][*_]*", re.IGNORECASE)
TAGS = ("action", "act", "answer", "command", "execute", "execute_bash", "execute_ipython", "code")
"""Names of tags around actions in common prompts."""
_TAG = re.compile(rf"<\|?(?:{'|'.join(TAGS)})\|?>", re.IGNORECASE)
_BARE = re.compile(r"[A-Za-z_][\w.\-]*")
_FINAL_ANSWER_NAMES = re.compile(r"(?:final[_\-]?)?answer|finish|submit|respond", re.IGNORECASE)
"""Names of actions that a final answer belongs to."""


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
        output: True for a fence that names a format of output: a cut answer may go on with code.
    """

    start: int
    end: int
    action: str
    closed: bool
    argument: str | None = None
    unclear: bool = False
    output: bool = False


def labelled(text: str, whole: Whole) -> list[Found]:
    """Actions after a label at the beginning of a line, else after one behind a sentence, up to an invented turn."""
    page, found = Page(text, LABEL, (), True, whole), list[Found]()
    labels = [label for label in page.labels if _is_plain(text, label)]
    stops = [*(label.start for label in labels[1:]), len(text)]
    every = sorted([*zip(labels, stops, strict=False), *_leading(page)], key=lambda each: each[0].start)
    for label, stop in every:
        since = found[-1].end if found else 0
        each = _with_payload(page, _after(page, label, stop), label, since, stop)
        if label.start not in whole or (label.start >= since and each.argument):
            found.append(each)
    complete = [each for each in found if each.action]
    end = page.speaker(complete[0].end, len(text)) if complete else 0
    return [each for each in complete if each.start < end]


def _is_plain(text: str, label: PagePart) -> bool:
    """Report whether a label is none of prose or code: behind a sentence it has its colon, and nowhere ``=``."""
    ends = text[label.start : label.end].rstrip(" \t*_`")[-1:]
    before = text[text.rfind("\n", 0, label.start) + 1 : label.start]
    return ends != "=" and (ends in ":：" or re.search(r"\w", before) is None)


def _leading(page: Page) -> Iterator[tuple[PagePart, int]]:
    """Labels at the beginning of a fence, and the end of its text: the fence holds the whole action.

    Behind one line alone, a payload may follow in the next fence.
    """
    for span in fences(page.text):
        opening = _OPENING.match(page.text, span.start)
        label = None if opening is None else label_pattern(LABEL).match(page.shape, opening.end())
        if label is not None and span.closed:
            end = page.text.rfind("\n", 0, span.end)
            is_name = not page.text[label.end() : end].partition("\n")[2].strip()
            following = (each.start for each in page.labels if each.start > span.end)
            yield PagePart(*label.span()), next(following, len(page.text)) if is_name else end


def tagged(text: str, names: Sequence[str], whole: Whole) -> list[Found]:
    """Actions between tags with one of these names, in order; one that is not closed holds none."""
    found = [found for name in names for found in _with_tag(text, name, whole)]
    return sorted(found, key=lambda each: each.start)


def in_fences(text: str) -> list[Found]:
    """Contents of code fences, in order; an empty one holds none."""
    every = ((span, is_ended(text, span)) for span in fences(text))
    found = (Found(each.start, each.end if ended else len(text), fenced(text, each), ended) for each, ended in every)
    return [each for each in found if each.action.strip()]


def code_in_fences(text: str) -> list[Found]:
    """Contents of code fences, in order: where some name a language of code, the others hold output."""
    every = [replace(each, output=_OUTPUT_OPENING.match(text, each.start) is not None) for each in in_fences(text)]
    named = [each for each in every if not each.output and _NAMED_OPENING.match(text, each.start) is not None]
    return named or every


def plain(text: str, whole: Whole) -> list[Found]:
    """A whole answer up to the first invented observation; one at its beginning is the action itself."""
    begin = len(text) - len(text.lstrip())
    stop = observed(text, begin + 1, len(text), whole)
    action = unlabelled(text[:stop])
    return [Found(0, stop, action, False)] if action else []


def has_label(text: str) -> bool:
    """Report whether a text holds a label or a tag of an action."""
    shape = plain_shape(text)
    return any(each.search(shape) is not None for each in (label_pattern(LABEL), inner_pattern(LABEL), _TAG))


def thought_before(text: str, start: int) -> str:
    """Last labelled thought before an action."""
    labels = list(_THOUGHT.finditer(text, 0, start))
    return text[labels[-1].end() : start].strip().strip("*").strip() if labels else ""


def _after(page: Page, label: PagePart, last: int) -> Found:
    stop = _stop(page, label.end, last)
    taken = extent(page.text, label.end, stop)
    given = label_pattern(INPUT).match(page.shape, stop)
    if given is None:
        action = cleaned(_untagged(without_label_marks(taken.text, page.shape[label.start : label.end])))
        return Found(label.start, taken.end, action, taken.closed, unclear=taken.unclear)
    argument = extent(page.text, given.end(), _stop(page, given.end(), last))
    return Found(label.start, argument.end, cleaned(taken.text), argument.closed, cleaned(argument.text))


def _with_payload(page: Page, found: Found, label: PagePart, since: int, last: int) -> Found:
    """An action with the payload of its bare name, if it is one that has a payload."""
    if found.argument is not None or found.closed or _BARE.fullmatch(found.action) is None:
        return found
    stop = _stop(page, label.end, last)
    is_answer = _FINAL_ANSWER_NAMES.fullmatch(found.action) is not None
    final = label_pattern(FINAL).search(page.shape, found.end, page.turn(label.end, last)) if is_answer else None
    if final is None or page.other(found.end, final.start()) < final.start():
        payload = payload_of_bare_name(page, PagePart(label.start, found.end), since, stop)
    else:
        payload = final_answer(page, final.end(), _stop(page, final.end(), last)) or MISSING
    if payload is None:
        return found
    action = found.action if payload.text.strip() and not is_template(payload.text) else ""
    return Found(found.start, max(payload.end, found.end), action, payload.closed, payload.text)


def _stop(page: Page, start: int, last: int) -> int:
    """Position of the next label or invented observation; ``last`` at the latest."""
    given = label_pattern(INPUT).search(page.shape, start, last)
    return page.turn(start, page.other(start, last if given is None else given.start()))


def _untagged(action: str) -> str:
    inner = tagged(action, TAGS, Whole(()))
    return inner[-1].action if inner and inner[0].start == 0 else action


def _with_tag(text: str, name: str, whole: Whole) -> Iterator[Found]:
    """Actions in one kind of tag: ``<name>...</name>``, or ``<|name|>...<|end|>``."""
    marks = re.compile(rf"(?P<open><\|? ?{name} ?\|?>)|</ ?{name} ?>|<\|/?(?:end|{name})\|>", re.IGNORECASE)
    outside = (mark for mark in marks.finditer(text) if mark.start() not in whole)
    for mark, following in pairwise((*outside, None)):
        assert mark is not None
        action = unlabelled(text[mark.end() : following.start()]) if following is not None else ""
        if mark["open"] and following is not None and not following["open"] and action:
            yield Found(mark.start(), following.end(), action, True)


def unlabelled(text: str) -> str:
    """An action without a label, a fence and marks around it."""
    label = label_pattern(LABEL).match(plain_shape(text.strip())) if not text.lstrip().startswith("{") else None
    action = text.strip()[label.end() :] if label else text
    return cleaned(extent(action, 0, len(action)).text if action.strip().startswith(("```", "~~~")) else action)
