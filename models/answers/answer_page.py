"""An answer with the labels of its form, its fences, and the turns that it invents.

A page is an answer with its labels. Its ``shape`` is the answer with plain punctuation, character by character, in
which labels are looked for: full-width colons, quotation marks and blanks of other scripts count as the plain ones.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, islice

from coevo.models.answers.extent import is_shell
from coevo.models.answers.observations import observed
from coevo.models.answers.spans import Span, Whole, data_of, heredocs, quoted, without_margin
from coevo.records.answer_form import NamedAction

MAX_LABELS = 256
"""Maximum number of labels of an answer that are read."""
MAX_MARGIN = 400
"""Maximum characters of a line before a mark of a fence, or behind it, that are looked at."""
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("：﹕︓", ":"),
        **dict.fromkeys("\r\u2028\u2029\x0b\x0c\x85", "\n"),
        **dict.fromkeys("\u00a0\u3000\u2009\u200a\u202f\u200b\u200c\u200d\u2060\ufeff\t", " "),
        **dict.fromkeys("“”„«»", '"'),
        **dict.fromkeys("‘’‚´", "'"),
        **dict.fromkeys("【「『〔［", "["),
        **dict.fromkeys("】」』〕］", "]"),
        **dict.fromkeys("•●▪◦‣·∙", "-"),
        **dict.fromkeys("＊∗", "*"),
    }
)
_ROLE = r"(?:agent|assistant|ai|bot|model|me|step|turn|round|response|reply|output|answer)(?: ?\d{1,3})?[*_ ]{0,4}:"
_LEAD = rf"^(?:[^\w\n]|_|\d{{1,3}}[.)]|[a-z][.)](?= )|(?<=<)/?(?:b|strong|em|i|p|li|h\d)(?=>)|{_ROLE})*?"
"""Marks before a label at the beginning of its line: markdown, numbers, symbols, and the model's own role."""
_WORDS = r"(?:(?:next|final|chosen|selected|best|my|the|your|first|new|current) ){0,3}"
_AFTER = (
    r"(?: ?[#\[(]?\d{1,3})?(?:</(?:b|strong|em|i|p)>|[\])>])?(?: {0,4}(?P=marks) {0,4}:"
    r"|[*_`\"'\])> ]{0,8}(?::|=|->|→)(?:[*_]{1,4}(?=[ \n]|\Z)| *(?P=marks))?"
    r"|(?P=marks)?[*_ ]{0,8}(?<=[ *_])[\-–—](?= )|[\])>](?= )|[*_` ]*(?=\n|\Z)) *(?:</(?:b|strong|em|i|p)> *)?"
)
"""Text behind a label. Marks before the label end it, behind the colon at the latest; others are the action's."""
_SKIP = r"(?:[ *_\"'\[(<{\-]|</?(?:b|strong|em|i|p)>|`(?!``)|`{1,2}(?=\w)|```\w*\n|\d{1,2}[.)] |\\|\n)*"
"""Marks between a label and its name."""
_BEHIND = re.compile(
    r"(?:</?(?:b|strong|em|i|p)>|[ *_\"'\])>}.:,;]|`(?!``)|-(?= )|\((?:sql|query|bash|shell)\))*", re.IGNORECASE
)
"""Marks behind a name."""
_JOINED = re.compile(r"[ *_`\"'\])>]{0,4}(?:or|/|\||,)(?=[ *_`\"'\[(<\w])", re.IGNORECASE)
"""Text between the names of a choice."""
_TURN = re.compile(
    r"^(?!-- )[ >#*_\[|\-]{0,12}(?:(?:new|next|the|current|actual|expected|sample|simulated|assumed) ){0,2}"
    r"(?:assistant|ai|bot|database|db|mysql|sqlite|terminal|shell|console|os|observations?|feedback|environment|user"
    r"|(?:(?:sql|query|execution|database|command|shell|bash|example|returned) )?(?:results?|outputs?|response)"
    r"|human|agent|system)(?: ?\d{1,3})?(?: ?\([^()\n]{0,40}\))?[*_\] ]{0,6}:",
    re.IGNORECASE | re.MULTILINE,
)
"""Line that imitates another speaker of the dialogue."""
_IN_FIELD = re.compile(r"^[ {,]*\"[\w ]{1,40}\" *:(?: *\"(?:[^\"\\]|\\.)*+)?$")
"""Text of a line before a label that stands in the value of a field of JSON."""
_OTHER = re.compile(
    r"^[ >#*_+\-\"']{0,12}(?:thoughts?|think(?:ing)?|reasoning|reflection|plan|explanation|rationale|analysis|notes?"
    r"|reason|justification|verification|remarks?|questions?|task|instructions?|next|state|history|final answer"
    r"|step \d+)(?: ?\d{1,3})?[*_ ]{0,8}:",
    re.IGNORECASE | re.MULTILINE,
)
"""Label of something that is no action."""
MARK = re.compile(r"(?P<mark>`{3,}|(?<![^\n ])~{3,})(?P<info>[\w+\-.#]*)")
"""Mark of a fence with its language."""
STATEMENT = re.compile(
    r"\s*+(?:(?:--[^\n]*+|/\*.*?\*/)\s*+)*+\(?(?:select|insert|update|delete|with|create|alter|drop|show|describe|desc|explain"
    r"|use|call|pragma|grant|revoke|truncate|replace|merge|set|begin|start|commit|rollback|values|analyze|rename|load)\b",
    re.IGNORECASE | re.DOTALL,
)
"""Beginning of SQL."""
FAMILIES = (
    {"sql", "mysql", "sqlite", "sqlite3", "postgresql", "postgres", "psql", "mariadb", "plsql", "tsql", "pgsql"},
    {"bash", "sh", "shell", "zsh", "console", "terminal", "shell-session", "shellscript", "command", "cmd"},
    {"python", "py", "python3", "ipython"},
    {"javascript", "js", "typescript", "ts"},
)
NEUTRAL = {"", "text", "txt", "plaintext", "plain", "code", "markdown", "md", "action", "query", "script"}
_NAMES_OF_LANGUAGES = frozenset().union(*FAMILIES, NEUTRAL) - {""}


@dataclass(frozen=True, slots=True)
class PagePart:
    """Part of an answer: a label, or a payload.

    Attributes:
        start: its position.
        end: position behind it.
        text: its text, where it is a payload.
        closed: True if its form, or what follows it, shows that it is complete.
        fault: reason why it cannot be used; empty if it can.
        is_open: True for a fence without a mark that ends it.
    """

    start: int
    end: int
    text: str = ""
    closed: bool = False
    fault: str = ""
    is_open: bool = False


def plain_shape(text: str) -> str:
    """A text in which the punctuation and the blanks of other scripts are plain, character by character."""
    return text.translate(_PLAIN)


@lru_cache(maxsize=64)
def label_pattern(label: str) -> re.Pattern[str]:
    """Pattern of a label at the beginning of a line, with what belongs to it up to the action."""
    return re.compile(rf"{_LEAD}{_label(label)}", re.IGNORECASE | re.MULTILINE)


@lru_cache(maxsize=64)
def inner_pattern(label: str) -> re.Pattern[str]:
    """Pattern of a label behind a sentence, or anywhere in a line if it is in capital letters."""
    before = (
        rf"(?:(?<=[.!?;:)\]。！？,])[ ]+|(?<=\w)[ ]+(?-i:(?={re.escape(label.upper())}[ ]?:)))"
        rf"(?:[^\w\n]|\d[.)]|{_ROLE}){{0,6}}?"
    )
    return re.compile(before + _label(label), re.IGNORECASE)


def _label(label: str) -> str:
    words = r"[ _\-]?".join(map(re.escape, label.split(" ")))
    return rf"(?P<marks>[*_]{{1,4}})? ?{_WORDS}{words}(?: is| to take)?{_AFTER}"


@lru_cache(maxsize=64)
def _names(names: Sequence[str]) -> re.Pattern[str]:
    every = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.compile(rf"{_SKIP}(?P<name>{every})(?!_*[^\W_]|-)", re.IGNORECASE)


class Page:
    """An answer, and the labels of a form in it.

    Args:
        text: the answer.
        label: label of the form.
        names: names of actions, which the label needs; empty where any text follows it.
        finished: False if the length limit cut it.
        data: parts in which nothing is a label or a turn; here-documents by default.
    """

    def __init__(
        self, text: str, label: str, names: tuple[str, ...], finished: bool, data: Whole | None = None
    ) -> None:
        self.text, self.shape = text, plain_shape(text)
        self._label, self._known, self._finished = label, names, finished
        documents = [each for each in heredocs(text) if each.closed or not finished]
        self._heredocs, self._code = Whole(documents), self.shape
        for each in documents:
            self._code = f"{self._code[: each.start]}{' ' * (each.end - each.start)}{self._code[each.end :]}"
        self._texts = dict[tuple[int, bool], tuple[Whole, ...]]()
        self._data = self._heredocs if data is None else data

    @cached_property
    def labels(self) -> list[PagePart]:
        """First labels of actions at the beginning of a line; behind a sentence where a name, or no other, follows."""
        lines = self._labels(label_pattern(self._label))
        if lines and not self._known:
            return lines
        inner = [each for each in self._labels(inner_pattern(self._label)) if self._is_named(each)]
        inner = [each for each in inner if not lines or each.end not in self._quotes]
        starts = Whole(Span(each.start - 1, each.end + 1) for each in lines)
        return sorted([*lines, *(each for each in inner if each.end not in starts)], key=lambda each: each.start)

    @cached_property
    def _quotes(self) -> Whole:
        """Quotes of a line; code may hold a label in one."""
        return Whole(each for each in quoted(self.shape) if self.shape[each.start] != "`")

    def _labels(self, pattern: re.Pattern[str]) -> list[PagePart]:
        every = (PagePart(*mark.span()) for mark in pattern.finditer(self.shape) if not self._is_data(mark))
        return list(islice((each for each in every if each.start not in self._data), MAX_LABELS))

    def _is_data(self, mark: re.Match[str]) -> bool:
        """Report whether a label is a fence, stands in a comment, or in the text of a field of JSON."""
        line = self.shape[max(0, mark.start() - MAX_MARGIN) : mark.start()].rpartition("\n")[2]
        begin = mark[0].lstrip()
        return MARK.match(begin) is not None or begin.startswith("/*") or _IN_FIELD.search(line) is not None

    def _is_named(self, label: PagePart) -> bool:
        return not self._known or self._name_at(label.end) is not None

    def ends(self, label: PagePart, following: PagePart) -> bool:
        """Report whether what belongs to a label ends at a following one; one without a name may be code."""
        return following.start >= label.end and (self._is_named(following) or not self._is_named(label))

    def _name_at(self, start: int) -> re.Match[str] | None:
        """Name of an action at a position, with the marks before it."""
        return _names(self._known).match(self.shape, start)

    def named(self, label: PagePart, actions: Sequence[NamedAction]) -> tuple[NamedAction, PagePart] | None:
        """Action that a label names, and its label with the name; None if it names none."""
        found = self._name_at(label.end)
        if found is None or self._is_choice(found.end()):
            return None
        end = _BEHIND.match(self.shape, found.end())
        name = found["name"].lower()
        action = next(each for each in actions if each.name.lower() == name)
        return action, PagePart(label.start, found.end() if end is None else end.end())

    def _is_choice(self, position: int) -> bool:
        """Report whether another name follows one, as in ``Operation or Answer``: a format that is repeated."""
        joined = _JOINED.match(self.shape, position)
        return joined is not None and self._name_at(joined.end()) is not None

    def turn(self, start: int, stop: int, language: str = "") -> int:
        """Position of the first invented turn; ``stop`` without one. In a script a comment before a command is none."""
        last = self._turn(start, stop)
        while language.lower() in FAMILIES[1] and self.text.startswith("# ", last):
            end = self.text.find("\n", last, stop) + 1
            if not end or not is_shell(self.text[end : end + MAX_MARGIN].partition("\n")[0]):
                break
            last = self._turn(end, stop)
        return last

    def _turn(self, start: int, stop: int) -> int:
        return min(self.speaker(start, stop), observed(self.shape, start, stop, self._data))

    def speaker(self, start: int, stop: int) -> int:
        """Position of the first line of another speaker; ``stop`` without one."""
        return next((at.start() for at in _TURN.finditer(self.shape, start, stop) if self._counts(at, start)), stop)

    def other(self, start: int, stop: int) -> int:
        """Position of the first label of something else; ``stop`` without one."""
        marks = _OTHER.finditer(self.shape, start, stop)
        return next((at.start() for at in marks if self._counts(at, start)), stop)

    def marks(self, start: int, stop: int) -> list[re.Match[str]]:
        """Marks of fences outside of here-documents."""
        return self._marks[bisect_left(self._places, start) : bisect_left(self._places, stop)]

    @cached_property
    def _marks(self) -> list[re.Match[str]]:
        return [mark for mark in MARK.finditer(self.shape) if mark.start() not in self._heredocs]

    @cached_property
    def _places(self) -> list[int]:
        return [mark.start() for mark in self._marks]

    def opens(self, mark: re.Match[str]) -> bool:
        """Report whether a mark can only begin a fence: it has a language, and the line to itself."""
        line = self.shape[mark.end() : mark.end() + MAX_MARGIN].partition("\n")[0]
        return mark["info"] != "" and not line.strip() and not self._margin(mark).strip(" >*-")

    def is_inline(self, mark: re.Match[str], start: int) -> bool:
        """Report whether a mark stands behind text in its line, which begins at ``start`` at the earliest."""
        return self._margin(mark).strip(" >*-") != "" and self.shape[start : mark.start()].strip(" :*_`") != ""

    def language(self, mark: re.Match[str]) -> str:
        """Language that a mark names, in lower case; empty where code follows the mark in its line."""
        info, line = mark["info"].lower(), self.shape[mark.end() : mark.end() + MAX_MARGIN].partition("\n")[0]
        return info if info in _NAMES_OF_LANGUAGES or not line.strip() else ""

    def around(self, label: PagePart) -> bool:
        """Report whether a label stands in a fence."""
        place = bisect_left(self._places, label.start)
        return place > 0 and self._is_open[place - 1]

    @cached_property
    def _is_open(self) -> list[bool]:
        """For each mark, whether text behind it stands in a fence."""
        return list(accumulate(self._marks, lambda is_open, mark: self.opens(mark) or not is_open, initial=False))[1:]

    def rest_of_fence(self, label: PagePart) -> PagePart:
        """The fence that a label stands in, from the end of the label."""
        return self.fence(self._marks[bisect_left(self._places, label.start) - 1], label.end)

    def fence(self, mark: re.Match[str], since: int | None = None) -> PagePart:
        """The fence that a mark begins; it also ends where another round, or another fence, shows that it was open.

        Args:
            mark: the mark.
            since: position in the fence from which its text counts.
        """
        start = self._content(mark) if since is None else since
        places = range(bisect_left(self._places, max(start, mark.start() + 1)), len(self._marks))
        ends = (self._marks[at] for at in places if self._ends(mark, self._marks[at], start))
        closing = self._outside_text(mark, start, next(ends, None), ends)
        stop = len(self.text) if closing is None else closing.start()
        is_open = closing is None or self.opens(closing)
        end = stop if closing is None or is_open else closing.end() - len(closing["info"])
        broken = self._broken(mark, start, stop, is_open)
        if broken < stop:
            stop, end, is_open = broken, broken, True
        inner = self.text[start:stop].strip("\n").rstrip()
        margin = self.text[mark.start() - len(self._margin(mark)) : mark.start()]
        text = without_margin(inner if "\n" in inner else inner.strip(), margin)
        return PagePart(
            mark.start(), end, _without_language(text), not is_open or end < len(self.text), is_open=is_open
        )

    def _outside_text(
        self, mark: re.Match[str], start: int, closing: re.Match[str] | None, others: Iterator[re.Match[str]]
    ) -> re.Match[str] | None:
        """The mark that ends a fence, or the next one where the first stands in a text of the code that ends there.

        None if the text may end behind the end of a cut answer.
        """
        if closing is None or closing["info"]:
            return closing
        is_sql = self._is_sql(mark, start, closing.start())
        if not (is_sql or self.language(mark) in FAMILIES[1]) or not self._is_quoted(start, closing.start(), is_sql):
            return closing
        following = next(others, None)
        stop = len(self.text) if following is None else following.start()
        labels = (each for each in self.labels if closing.end() <= each.start < stop)
        if self.turn(closing.end(), stop) < stop or next(labels, None) is not None:
            return closing
        if following is None or following["info"] or self._is_quoted(start, stop, is_sql):
            return closing if self._finished else None
        return following

    def _ends(self, opening: re.Match[str], mark: re.Match[str], start: int) -> bool:
        """Report whether a mark can end a fence, or begins the next: it is as long, and not within the code."""
        if not mark["mark"].startswith(opening["mark"]):
            return False
        is_within = self._margin(mark).strip(" >") != "" and self.shape.find("\n", opening.end(), mark.start()) >= 0
        is_sql = is_within and self._is_sql(opening, start, mark.start())
        has_more = self._has_text_behind(mark)
        if not is_within:
            return not has_more or not self._is_quoted(start, mark.start(), self._is_sql(opening, start, mark.start()))
        return not (has_more or self._is_text(start, mark.start(), is_sql))

    def _has_text_behind(self, mark: re.Match[str]) -> bool:
        start = mark.start() + len(mark["mark"])
        return self.shape[start : start + MAX_MARGIN].partition("\n")[0].strip(" .,:;!*_") != ""

    def _margin(self, mark: re.Match[str]) -> str:
        """Text before a mark in its line."""
        return self.shape[max(0, mark.start() - MAX_MARGIN) : mark.start()].rpartition("\n")[2]

    def _content(self, mark: re.Match[str]) -> int:
        """Position of the text of a fence: behind the line of its mark, or behind its mark in a line."""
        line_end = self.shape.find("\n", mark.end())
        rest = self.shape[mark.end() : len(self.shape) if line_end < 0 else line_end]
        if not rest.strip():
            return mark.end() + len(rest)
        return mark.end() if mark["info"].lower() in _NAMES_OF_LANGUAGES else mark.start() + len(mark["mark"])

    def _broken(self, mark: re.Match[str], start: int, stop: int, is_open: bool) -> int:
        """Position in a fence where another round begins; ``stop`` if none does.

        In SQL that is the line of another speaker; in other code only one that names an action, or that ends the text.
        """
        is_sql = self._is_sql(mark, start, stop)
        named = (each.start for each in self.labels if start <= each.start < stop and self._is_named(each))
        labels = (each for each in named if self.shape[each - 1 : each] in ("", "\n"))
        label = next((each for each in labels if not self._is_text(start, each, is_sql)), stop)
        every = (each.start() for each in _TURN.finditer(self.shape, start, label) if self._counts(each, start))
        turns = (each for each in every if not self._is_text(start, each, is_sql))
        if is_sql or is_open or label < stop:
            return next(turns, label)
        last = self.shape[start:stop].rstrip().rpartition("\n")
        ends = _TURN.fullmatch(last[2].strip(" *"))
        return start + len(last[0]) if ends and last[0] else stop

    def _is_sql(self, mark: re.Match[str], start: int, stop: int) -> bool:
        language = self.language(mark)
        return language in FAMILIES[0] or (not language and STATEMENT.match(self.shape, start, stop) is not None)

    def _is_text(self, start: int, position: int, is_sql: bool) -> bool:
        """Report whether a line of the code that begins at ``start`` is a comment, or stands in a text."""
        if self.shape.startswith(("--", "# "), position):
            return True
        if (start, is_sql) not in self._texts:
            self._texts[start, is_sql] = data_of(self._code[start:], is_sql)
        return all(position - start in data for data in self._texts[start, is_sql])

    def _is_quoted(self, start: int, position: int, is_sql: bool) -> bool:
        """Report whether a text of the code that begins at ``start`` is open at a position."""
        return all(position - start in data for data in data_of(self._code[start : position + 1], is_sql))

    def _counts(self, mark: re.Match[str], start: int) -> bool:
        at_line = mark.start() == 0 or self.shape[mark.start() - 1] == "\n"
        return mark.start() not in self._data and at_line and mark.start() > start - 1


def _without_language(text: str) -> str:
    """Text of a fence without a first line that is the name of a language."""
    first, line_break, rest = text.partition("\n")
    is_name = first.strip().lower() in _NAMES_OF_LANGUAGES - NEUTRAL - {"command", "cmd"}
    return rest if line_break and is_name else text
