"""Payloads behind a label: a line, a block, code in a fence or without one, and a final answer in text."""

import re
from collections.abc import Sequence
from dataclasses import replace

from coevo.models.answers.answer_page import (
    FAMILIES,
    MARK,
    NEUTRAL,
    STATEMENT,
    Page,
    PagePart,
    inner_pattern,
    label_pattern,
)
from coevo.models.answers.extent import ActionKind, cleaned, extent, is_prose, is_shell, is_unfinished, kind_of
from coevo.models.answers.spans import bracketed, without_data
from coevo.models.answers.wrappings import boxed_at, unboxed, without_label_marks
from coevo.records.answer_faults import Fault
from coevo.records.answer_form import NamedAction
from coevo.records.lenient import value_at

PROSE_LINES = 3
"""Maximum number of lines of prose between a name that is not known and its fence."""
MISSING = PagePart(0, 0)
"""Payload that is announced, but does not follow: its action is not complete."""
_ANNOUNCES = re.compile(r"\b(?:query|sql|code|command|statement|script|answer)\b[^\n]*:[*_]*$", re.IGNORECASE)
"""Line of prose that announces a payload."""
_PROSE = re.compile(
    r"[\W_]*(?:[A-Z][a-z']* +[a-z]|I'\w+ "
    r"|(?:explanation|note|reason|because|since|this|these|so|therefore|where)\b(?=.* .* ))",
)
"""Sentence behind an answer."""
_DOTS = re.compile(r"(?:^|[\s(,])(?:\.{3}|…)")
"""Dots in place of a part of a query."""
_NAMING = re.compile(
    r"[\s*_>]*(?:(?:the )?(?:my)?sql(?! -)|query|sql query|(?:action )?input|command|script|code|statement|operation)?"
    r"[*_ ]*(?::(?!\s*>)|(?<=\w):)?[\s*_>\"'`]*",
    re.IGNORECASE,
)
"""Marks and a name before code without a fence."""
_SHOWS = re.compile(r"(?:SHOW|DESCRIBE|DESC|USE|CALL)[ \t]+[\w`][^\n]*")
"""Statement that shows a table, or calls a procedure."""
_RULE = re.compile(r"[-=_*~ ]{3,}")
"""Line without words, between an answer and what follows."""
_MAX_WORDS = 6
"""Maximum number of words of a final answer without its label: more are a sentence about it."""
_NUMBER = re.compile(r"[+\-]?\d[\d,]*(?:\.\d+)?%?")
_ITEM = re.compile(r"\A(?:[\-*•+]|\d{1,2}[.)])\s+")
"""Mark of an item in a list."""
_STOP = re.compile(r"(?<=[\w\])])(?<!\.\w)\.\Z")
"""Full stop of a sentence, and not of an abbreviation."""
_NOUN = r"(?:query|quer(?:y|ies)|sql|commands?|code|answers?|statements?|actions?|script|text|name|payload)"
_TEMPLATE = re.compile(
    rf"[\s*_`\"'\[\](){{}}<>;]*(?:\.{{3}}|…)[\s.…*_`\"'\[\](){{}}<>;,]*|<[^<>\n]{{1,80}}>;?"
    rf"|\W*(?:(?:insert|put|write|enter|place|add)\s)?your(?:[\s_][\w\-]+){{0,4}}[\s_]{_NOUN}(?:\s(?:goes\s)?here)?\W*"
    rf"|\W*(?:the\s|an?\s)?(?:[\w\-]+\s){{0,3}}?{_NOUN}\s(?:goes\s)?here\W*|[\[{{<(]\s*(?:[\w\-]+\s){{0,4}}{_NOUN}\s*[\]}}>)]"
    rf"|\W*(?:todo|tbd|and)\W*|\W*(?:sql\s(?:query|statement|command)|bash\s(?:command|script))\W*"
    rf"|\[?\W*answer[\s_]?\d(?:\W+answer[\s_]?\d)*\W*",
    re.IGNORECASE,
)
"""Text of a format that nobody has filled in."""
_REMARKS = re.compile(r"(?:(?:--|#)[^\n]*(?:\n\s*|\Z))+|\$\{?\w+\}?;?")
"""Code of comments alone, or a variable that stands for all of it."""
_REPEATS = re.compile(
    r"\b(?:from|into|update) (?:your_|my_|the_)?table(?:_?name)?\b.*\bwhere (?:your_|some_)?conditions?\s*(?:;|\Z)"
    r"|\b(?:select|from|into|update|set|where|values|join|by)\s*\(?\s*<\w[\w \-]*>",
    re.IGNORECASE | re.DOTALL,
)
"""Query of a format that looks like one of its own, and is none."""
_SAMPLE = re.compile(r"\b(?:your|some)_(?:table|column)\w*\b", re.IGNORECASE)
"""Names in a query that may be one of a format."""


def fence_payload(page: Page, label: PagePart, language: str, since: int, stop: int) -> PagePart | None:
    """Payload of a name that has a fence.

    It stands in a fence behind the name, also behind lines of prose; in the fence that the name stands in; directly
    before the label; or, where there is no fence, in the lines behind the name, if these are code by their own form.

    Args:
        page: the answer.
        label: label with its name.
        language: language of the fence; empty for any.
        since: end of the action before.
        stop: position of the next label.
    """
    last = page.turn(label.end, stop, language)
    marks = page.marks(label.end, last)
    found = _around(page, label, language) or _in_fences(page, marks, label.end, language)
    if found is None and page.around(label) and marks and not page.shape[label.end : marks[0].start()].strip():
        found = _in_fences(page, marks[1:], label.end, language)
    if found is None:
        found = _unfenced(page, label.end, page.other(label.end, last), language)
    return found or _before(page, label, language, since, last)


def payload_of_bare_name(page: Page, label: PagePart, since: int, stop: int) -> PagePart | None:
    """Payload of a name that may have one: a fence behind a few lines of prose, a query, a value, or a fence before.

    Args:
        page: the answer.
        label: label with its name.
        since: end of the action before.
        stop: position of the next label or turn.

    Returns:
        The payload; None without one; ``MISSING`` if one is announced that does not follow.
    """
    marks = page.marks(label.end, stop)
    mark = next(iter(marks), None)
    between = page.shape[label.end : stop if mark is None else mark.start()]
    prose = [line for line in between.split("\n") if line.strip()]
    found = _around(page, label, "")
    if found is None and mark is not None and len(prose) <= PROSE_LINES:
        found = _in_fences(page, [mark], label.end, "") or (MISSING if mark["info"] else None)
        is_apart = len(marks) > 1 and page.around(label) and not page.shape[mark.end() : marks[1].start()].strip()
        found = found or (_in_fences(page, marks[1:2], label.end, "") if is_apart else None)
    if found is None:
        found = _value(page, label.end, stop) or _before(page, label, "", since, stop)
    is_announced = mark is None and 0 < len(prose) <= PROSE_LINES and _ANNOUNCES.search(prose[-1].rstrip())
    return found or (MISSING if is_announced else None)


def _value(page: Page, start: int, stop: int) -> PagePart | None:
    """Query, JSON or box directly behind a name."""
    begin = stop - len(page.shape[start:stop].lstrip())
    if kind_of(page.text[begin:stop].split("\n")) is ActionKind.QUERY:
        found = _code(page, begin, stop)
        return None if found.fault else found
    at = page.text[begin : begin + 2]
    is_json = at[:1] in ("{", "[") and value_at(page.text, begin) is not None
    is_box = boxed_at(page.text, begin + (at[:1] == "$"))
    answer = final_answer(page, begin, stop) if is_json or is_box or at == "[(" else None
    return None if is_json and answer is not None and _value_ends(page.text, begin) < answer.end else answer


def _value_ends(text: str, begin: int) -> int:
    """End of a value in JSON with the marks and blanks behind it."""
    found = value_at(text, begin)
    end = begin if found is None else found[1]
    return end + len(text[end:]) - len(text[end:].lstrip(" .`*\n"))


def _around(page: Page, label: PagePart, language: str) -> PagePart | None:
    """Code behind a name in the same fence."""
    if not page.around(label):
        return None
    fence = page.rest_of_fence(label)
    is_outer = any(map(page.opens, page.marks(fence.end, fence.end + 1)))
    if not fence.text.strip() or is_outer or not _is_code(fence.text, language):
        return None
    found = _without_prose(fence, language) if fence.is_open else fence
    return replace(found, start=label.start)


def _in_fences(page: Page, marks: Sequence[re.Match[str]], start: int, language: str) -> PagePart | None:
    """The first fence with code, else the first one that names the language; none within a line of prose."""
    every = list[tuple[str, PagePart]]()
    for mark in marks:
        if mark.start() >= start and not page.is_inline(mark, start):
            fence, info = page.fence(mark), page.language(mark)
            start = fence.end
            every += [(info, fence)] if fence.text.strip() and _fits(info, language) else []
    found = next((fence for info, fence in every if info not in NEUTRAL or _is_code(fence.text, language)), None)
    return _without_prose(found, language) if found is not None and found.is_open else found


def _without_prose(fence: PagePart, language: str) -> PagePart:
    """A fence without a mark that ends it, up to the end of its statement or script where prose follows."""
    kind = ActionKind.QUERY if _SHOWS.match(fence.text) else _kind(fence.text.split("\n"), language)
    if kind not in (ActionKind.QUERY, ActionKind.SHELL):
        return fence
    found = extent(fence.text, 0, len(fence.text), kind)
    behind = [line for line in fence.text[found.end :].split("\n") if line.strip() and line[0] != "#"]
    if kind is ActionKind.SHELL and (not behind or not is_prose(behind[0]) or any(map(is_shell, behind))):
        return fence
    return fence if found.unclear or found.end >= len(fence.text) else replace(fence, text=found.text)


def text_payload(page: Page, label: PagePart, action: NamedAction, since: int, stop: int) -> PagePart | None:
    """Payload of a name that has a label: a text behind it, else behind the name itself, else one before the name."""
    last = page.turn(label.end, stop)
    for name in (str(action.label), action.name, str(action.label).split(" ")[0]):
        mark = label_at(page, name, label.end, last)
        if mark is not None:
            return final_answer(page, mark.end(), last)
    found = final_answer(page, label.end, page.other(label.end, last))
    if found is not None:
        return found if _is_bare(page, label, action.name, found) else None
    before = label_pattern(str(action.label)).search(page.shape, since, label.start)
    return None if before is None else final_answer(page, before.end(), label.start)


def _is_bare(page: Page, label: PagePart, name: str, answer: PagePart) -> bool:
    """Report whether a text behind a name is an answer rather than the rest of a sentence."""
    glue = page.shape[label.start : label.end].lower().rpartition(name.lower())[2]
    apart = ":" in glue or "=" in glue or page.shape[label.end : label.end + 1] in ("\n", "")
    is_value = answer.closed and answer.text[:1] in ("[", "(", "{")
    is_number = _NUMBER.fullmatch(answer.text) is not None
    is_short = (
        len(answer.text.split()) <= _MAX_WORDS and not _PROSE.match(answer.text) and answer.text[-1:] not in ".:?"
    )
    return is_number or (apart and (is_value or is_short))


def label_at(page: Page, name: str, start: int, stop: int) -> re.Match[str] | None:
    """Label of a payload: at the position, at the beginning of a line, or behind a sentence."""
    direct = re.compile(rf"{re.escape(name)}[*_]* ?:[*_ ]*", re.IGNORECASE).match(page.shape, start, stop)
    found = direct or label_pattern(name).search(page.shape, start, stop)
    return found or inner_pattern(name).search(page.shape, start, stop)


def line_of(page: Page, label: PagePart, stop: int) -> PagePart | None:
    """The rest of a label's line; the next line that is not blank where the label has the line to itself."""
    last = page.other(label.end, page.turn(label.end, stop))
    start = last - len(page.shape[label.end : last].lstrip())
    mark = MARK.match(page.shape, start, last)
    if mark is not None:
        found = page.fence(mark)
        lines = [line for line in found.text.split("\n") if line.strip()]
        fault = Fault.SEVERAL_LINES if len(lines) > 1 else ""
        return PagePart(start, found.end, "\n".join(lines).strip(), found.closed, fault)
    end = page.shape.find("\n", start, last)
    end = last if end < 0 else end
    text = without_label_marks(page.text[start:end].strip(), page.shape[label.start : label.end])
    text = text if start == label.end else _ITEM.sub("", text)
    return PagePart(start, end, _STOP.sub("", cleaned(text)), end < len(page.text))


def block_of(page: Page, label: PagePart, stop: int) -> PagePart | None:
    """All lines up to the next label; or the text of a fence that begins there, or behind a line that announces it."""
    last = page.other(label.end, page.turn(label.end, stop))
    marks = page.marks(label.end, last)
    if page.around(label):
        last = marks[0].start() if marks and not page.opens(marks[0]) else last
        marks = []
    if marks:
        before = page.shape[label.end : marks[0].start()].strip()
        if not before or (before.endswith(":") and "\n" not in before):
            return page.fence(marks[0])
        last = _stray(page, marks, last)
    inner = page.text[label.end : last].strip("\n").rstrip()
    return PagePart(label.start, last, inner.strip() if "\n" not in inner else inner, last < len(page.text))


def _stray(page: Page, marks: Sequence[re.Match[str]], last: int) -> int:
    """End of a block without the mark of a fence that ends it, but was never opened."""
    is_alone = len(marks) == 1 and not marks[0]["info"] and not page.shape[marks[0].end() : last].strip()
    return marks[0].start() if is_alone else last


def is_template(text: str, language: str = "") -> bool:
    """Report whether a payload is a format that nobody has filled in: dots, a name in brackets, ``Your SQL here``."""
    said = without_data(text) if language in FAMILIES[0] else ""
    is_sketch = _DOTS.search(said) is not None or _REPEATS.search(said) is not None
    is_remark = any(language in each for each in FAMILIES) and _REMARKS.fullmatch(text.strip()) is not None
    return is_sketch or is_remark or _TEMPLATE.fullmatch(text.strip()) is not None


def repeats(payload: str) -> bool:
    """Report whether a payload may be the query of a common prompt's example."""
    said = without_data(payload) if STATEMENT.match(payload) else ""
    return _REPEATS.search(said) is not None or _SAMPLE.search(said) is not None


def _family(language: str) -> set[str]:
    return next((set(each) for each in FAMILIES if language.lower() in each), {language.lower()})


def _fits(info: str, language: str) -> bool:
    return not language or info in NEUTRAL or info in _family(language)


def _is_code(text: str, language: str) -> bool:
    """Report whether text without a language is code: a statement where SQL is wanted, else no announcement."""
    return STATEMENT.match(text) is not None if "sql" in _family(language) else not text.rstrip().endswith(":")


def _before(page: Page, label: PagePart, language: str, since: int, last: int) -> PagePart | None:
    """Fence directly before a label, unless another one is begun or announced behind it."""
    behind = page.shape[label.end : last].rstrip(" \n*")
    if behind.endswith(":") or page.marks(label.end, last):
        return None
    fence, found = MISSING, None
    for mark in page.marks(since, label.start):
        if mark.start() >= fence.end:
            fence, found = page.fence(mark), mark
    if found is None or fence.is_open or fence.end > label.start:
        return None
    gap = page.text[fence.end : label.start].strip(" \n*_")
    info = page.language(found)
    kind = kind_of(fence.text.split("\n"))
    is_code = kind is ActionKind.QUERY or (kind is ActionKind.CODE and not language)
    fits = info in _family(language) - NEUTRAL or (is_code if info in NEUTRAL else not language)
    fits = fits and (info not in NEUTRAL or not language or "sql" in _family(language))
    if gap.count("\n") > 1 or page.turn(fence.end, label.start) < label.start or not fits:
        return None
    return PagePart(fence.start, label.end, fence.text, last < len(page.text)) if fence.text.strip() else None


def _unfenced(page: Page, start: int, stop: int, language: str) -> PagePart | None:
    """Code without a fence behind a name, also behind a line of prose: SQL, or what its first line shows to be code."""
    marks = (mark.start() for mark in page.marks(start, stop) if not page.is_inline(mark, start))
    stop = next(marks, stop)
    position, is_sql = start, "sql" in _family(language)
    for _ in range(4):
        named = _NAMING.match(page.shape, position, stop)
        begin = position if named is None else named.end()
        kind = _kind(page.text[begin:stop].split("\n"), language)
        is_code = kind in (ActionKind.QUERY, ActionKind.SHELL) or (kind is ActionKind.CODE and not is_sql)
        if is_code or _SHOWS.match(page.text, begin, stop):
            return _code(page, begin, stop, kind)
        line = page.text[begin:stop].partition("\n")[0]
        is_apart = position == start and page.shape[start - 2 : start] in ("- ", ", ", ". ", "; ")
        is_named = is_apart or line.strip().lower() in {"", *FAMILIES[1]}
        if language.lower() in FAMILIES[1] and not is_named and not is_prose(line):
            return None
        position = page.text.find("\n", begin, stop)
        if position < 0:
            return None
    return None


def _kind(lines: list[str], language: str) -> ActionKind:
    """Kind of the code that lines begin with, in the language of the form."""
    if language.lower() not in FAMILIES[1]:
        return kind_of(lines)
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith("# ")), "")
    return ActionKind.SHELL if is_shell(first) else ActionKind.TEXT


def _code(page: Page, start: int, stop: int, kind: ActionKind | None = None) -> PagePart:
    """Code that begins at a position, as far as its own form tells, without the quotation mark that it ends in."""
    found = extent(page.text, start, stop, kind)
    is_partial = found.unclear or is_unfinished(found.text, kind)
    is_ended = found.closed or stop < len(page.text)
    quote = page.shape[start - 1 : start]
    shape = page.shape[found.end - len(found.text) : found.end]
    text = found.text[:-1] if quote in ('"', "'", "`") and shape.endswith(quote) else found.text
    return PagePart(start, found.end, text, is_ended, Fault.UNFENCED if is_partial else "")


def final_answer(page: Page, start: int, stop: int) -> PagePart | None:
    """Answer in text: a fence, a value in brackets, a box, or lines up to a blank one or a sentence that explains."""
    begin = stop - len(page.shape[start:stop].lstrip(" \n*_"))
    if begin == stop:
        return None
    mark = MARK.match(page.shape, begin, stop)
    if mark is not None:
        found = page.fence(mark)
        return found if found.text.strip() else None
    stop = min(stop, page.other(begin, stop), next((each.start() for each in page.marks(begin, stop)), stop))
    end = bracketed(page.text, begin, stop)
    if end is not None and not page.text[end:stop].partition("\n")[0].strip(" .`*$"):
        return PagePart(begin, end, page.text[begin:end], True)
    blank = re.compile(r"\n\s*\n").search(page.shape, begin, stop)
    paragraph = page.text[begin : blank.start() if blank else stop]
    boxed = unboxed(paragraph)
    if boxed is not None:
        return PagePart(begin, begin + boxed[1], boxed[0], True)
    lines = paragraph.split("\n")
    ends = (at for at in range(1, len(lines)) if _PROSE.match(lines[at].strip()) or _RULE.fullmatch(lines[at].strip()))
    count = next(ends, len(lines))
    said = "\n".join(lines[:count]).rstrip()
    end = begin + len(said)
    return PagePart(begin, end, cleaned(said), page.text[end:].strip() != "" and "\n" in page.text[end:])
