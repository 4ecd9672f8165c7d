"""Extent of an action: where the text after a label ends to be the action, and how it is cleaned.

An action is one line, unless its text shows that it continues: a fence, JSON, a here-document, brackets, quotes or
blocks of a shell that close in a later line, a line that ends in an operator, an indented next line, or more lines of
the same SQL or code.
"""

import re
from collections.abc import Callable
from enum import Enum, IntEnum, auto
from functools import reduce
from typing import NamedTuple

from coevo.models.answers.spans import HEREDOC, ends_in_quotes, fence_at, fenced, is_ended, unquoted, without_data
from coevo.records.lenient import value_at

_ENDS_OPEN = ("\\", "|", "&&", "||", "+", "=")
_PAIRS = (("**", "**"), ("`", "`"), ('"', '"'), ("'", "'"), ("“", "”"), ("__", "__"))
_BLOCK = re.compile(
    r"(?:^|[;&|({]|\b(?:do|then|else)\b)[ \t]*(?:(?P<opens>if|for|while|until|case)|(?P<closes>fi|done|esac))\b"
)
_SENTENCE = re.compile(r"[\w' \-]*\w\.")
_QUERY = re.compile(
    r"(?:(?:select|insert|update|delete|with|create|alter|drop|explain)\b|(?:start|begin)\s+(?:transaction|work)"
    r"|(?:begin|commit|rollback|end)(?:\s+(?:transaction|work))?\s*;|set\s+\S+\s*(?:=|to\b)|(?:replace|merge)\s+into\b"
    r"|truncate\s+table\b|(?-i:\((?=[( ]*SELECT\b))|(?:pragma|savepoint)\s+\w)",
    re.IGNORECASE,
)
"""Beginning of a statement in SQL."""
_CLAUSE = re.compile(
    r"(?:from|where|group|order|having|limit|offset|join|left|right|inner|outer|full|cross|natural|union|intersect"
    r"|except|and|or|on|set|values|as|select|insert|update|delete|returning|using|case|when|then|else|end|begin|not|in"
    r"|into|exists|between|like|window|partition|fetch|for|add|rename|modify|primary|foreign|references)\b"
    r"|[),;=]|\|\||\((?![A-Z][a-z']* )",
    re.IGNORECASE,
)
"""Beginning of a line that continues a statement."""
_UNFINISHED = re.compile(
    r"(?:^|[\s(])(?:select|distinct|from|where|by|and|or|(?<!= )on|set|(?<!default )values|as|in|not|join|union|all"
    r"|into|table|then|else|when|having|returning|exists|between|like|is|with|using|case|begin)$",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"((?:[^'\"\-]|'[^']*'|\"[^\"]*\"|['\"]|-(?!-))*+)--.*")
_PROSE = re.compile(r"[A-Z][a-z']*[ ,]+[\w'`]|[\-*>`]|\d+[.)] ")
"""Beginning of a sentence or of an item in a list."""
_COMMANDS = (
    r"ls|cd|cat|echo|mkdir|rm|cp|mv|grep|egrep|sed|awk|chmod|chown|pwd|pip3?|git|curl|wget|wc|tar|sudo|export"
    r"|source|apt|apt-get|npm|pytest|gcc|(?:python3?|bash|sh)(?= *\S)"
)
_CODE = re.compile(
    r"import [\w.]+(?: as \w+)?[ \t]*(?:[,;]|$)|from [\w.]+ import\b|(?:async )?def \w+\(|class \w+.*:[ \t]*$"
    r"|@\w[\w.]*(?:\(.*\))?[ \t]*$|(?:if|elif|while) .+:[ \t]*$|(?:async )?for \w+(?:, ?\w+)* in .+:[ \t]*$"
    r"|with [\w.]+\(.*\).*:[ \t]*$|(?:else|try|finally):|except\b.*:[ \t]*$|print\(|(?:const|let|var) \w+[ \t]*="
    r"|[A-Za-z_][\w.]*(?:\[[^\]]*\])?[ \t]*(?:[\-+*/|&%]|//|\*\*)?=(?!=)[ \t]*\S"
    rf"|(?:{_COMMANDS})(?:[ \t]|$)|\./\w|#!/|(?:for|while|until|if|case)\b.*(?:;[ \t]*(?:do|then)|[ \t]in)[ \t]*$"
    r"|[a-z][\w.\-]*(?:[ \t].*)?[ \t](?:(?:\||&&|\|\||>>?|2>&1)[ \t]|--?[a-z][\w\-]*(?:[ \t=]|$))"
    r"|[^ ].*\$[({]?[A-Za-z_]"
)
"""Line of Python, of a shell or of JavaScript that is neither prose nor a command of a game."""
_SHELL = re.compile(
    rf"(?:{_COMMANDS}|(?:user|group)(?:add|del|mod)|add(?:user|group)|g?passwd|chpasswd|groups|id|who|whoami|visudo|touch"
    r"|rmdir|ln|chgrp|chattr|setfacl|getfacl|install|truncate|shred|mktemp|stat|file|du|df|mount|umount|dd|sync|head|tail"
    r"|sort|uniq|cut|tr|tee|diff|comm|cmp|paste|join|split|nl|rev|tac|fold|expand|find|locate|which|type|xargs|printf|seq"
    r"|read|true|false|date|cal|env|printenv|set|unset|umask|ulimit|alias|hash|exec|eval|trap|hostname|uname|uptime"
    r"|free|top|ps|pgrep|pkill|kill|killall|nice|nohup|sleep|timeout|crontab|at|systemctl|service|journalctl|ip|ss"
    r"|netstat|ping|ssh|scp|rsync|dig|zip|unzip|g(?:un)?zip|bzip2|xz|zcat|md5sum|sha\d+sum|base64|base|dirname|basename"
    r"|realpath|readlink|rename|perl|ruby|node|make|gcc|dpkg|yum|dnf|apk|less|more|nano|vim?|tree|bc|expr|openssl|su"
    r"|pushd|popd|function|until|local|declare|getent|column|numfmt|xxd|od|strings|jq|exit"
    r"|wait|history|mysql|sqlite3|psql|docker)(?=[ \t;|&<>]|$)"
    r"|test[ \t]+(?:[\-!$\"'(]|\S+[ \t]+(?:!?=|-[a-z]{2}[ \t]))|~?/[\w.][\w./+\-]*(?=[ \t;|&<>]|$)"
    r"|for[ \t]+[A-Za-z_]\w*[ \t]+in\b|case[ \t]+\S+[ \t]+in\b"
    r"|(?:if|while|until)\b(?:[ \t]+(?:![ \t]+)?(?:\[|\(|(?:test|true|false|read|grep)\b)|.*;[ \t]*(?:do|then)\b)"
    r"|[A-Za-z_]\w*\+?=(?=\S|$)"
    r"|\(\(|\w[\w\-]*\(\)[ \t]*(?:\{|$)|:[ \t]*>|[:.][ \t]*[\w/.~$]|\[{1,2} "
    r"|>{1,2}[ \t]*[\w/.~$][^\s;&|]*[ \t]*(?:$|[;&|])"
)
"""Beginning of a line of a shell, where a form says that one follows."""
_SENTENCE_WORDS = re.compile(
    r"\s(?:I|(?i:the|an|is|are|was|it|its|this|that|these|those|them|they|which|what|there|of|we|you|would|should|needed"
    r"|now|first))\b(?![./=*\-])"
)
"""Words of a sentence about a command, outside of its quotes."""
_SHELL_QUOTES = re.compile(r"\\.|(?P<data>'[^']*+'|\"(?:[^\"\\]|\\.)*+\"|(?<![^\s;])#.*)|['\"].*")
"""Escaped characters, quoted text and comments, and a quotation mark without its other half."""
_FUNCTION = re.compile(r"(?:function[ \t]+)?([A-Za-z_][\w\-]*)[ \t]*\(\)")
"""Beginning of a line that defines a function of a shell."""
_COMMAND = re.compile(rf"(?:{_COMMANDS})(?=[ \t])")
_SAYS = re.compile(r"(?:^|[;&|({]|\b(?:do|then|else)\b)[ \t]*(?:echo|printf)\b[^;&|<>]*+")
"""Command whose arguments may be words of a sentence."""
_OPERATOR = re.compile(r"[|&<>]|;[ \t]*(?:(?:do|then|else|elif|fi|done|esac)\b|;|$)|\\;?$")
"""Signs of a command outside of quotes, which no sentence holds."""
_BEFORE = re.compile(
    r"[^a-z_./~$({\[!]|\([A-Za-z ,'\u2019\-]+[.!?]?\)$"
    r"|(?:to|for|with|and|as|so|now|we|in|by|next|using|here|this|the|let)\b|.*[.,:!?]$"
)
"""Line of prose before a script, which is no command that is not known."""
_MORE = re.compile(r"[A-Za-z_][\w.]*\(|\$[({]?\w|[)\]}]|(?:else|try|finally)\b.*:|(?:raise|assert|del|return|yield)\b")
"""Line that is code where the lines before it are."""


class ActionKind(Enum):
    """Kind of an action by its first line."""

    TEXT = auto()
    QUERY = auto()
    CODE = auto()
    SHELL = auto()


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
    """Parts of an action that are open behind a line: here-documents by their words, brackets, quotes, blocks.

    In a shell, quotes are those that are open by its own rules (``mark``); elsewhere their number tells.
    """

    is_shell: bool = False
    words: tuple[str, ...] = ()
    brackets: int = 0
    double: int = 0
    single: int = 0
    quotes: int = 0
    blocks: int = 0
    mark: str = ""

    def after(self, line: str) -> "_Open":
        """Parts that are open behind the next line."""
        if self.words:
            return self._replace(words=self.words[1:] if line.strip(" \t`") == self.words[0] else self.words)
        said, mark = unquoted(line, self.mark) if self.is_shell else (line, "")
        return self._replace(
            words=tuple(each["word"] for each in HEREDOC.finditer(line)),
            brackets=self.brackets + sum(map(said.count, "([{")) - sum(map(said.count, ")]}")),
            double=self.double + said.count('"""'),
            single=self.single + said.count("'''"),
            quotes=self.quotes + said.count('"') - said.count('\\"'),
            blocks=self.blocks + _blocks(said),
            mark=mark,
        )

    def is_open(self, trust: _Trust) -> bool:
        """Report whether any part is open."""
        always = self.words != () or self.double % 2 == 1 or self.single % 2 == 1
        return always or (trust >= _Trust.BRACKETS and self.brackets > 0) or (trust == _Trust.ALL and self._is_loose())

    def closes(self, trust: _Trust) -> bool:
        """Report whether no mark is open that was trusted to close."""
        return (trust < _Trust.BRACKETS or self.brackets <= 0) and not (trust == _Trust.ALL and self._is_loose())

    def _is_loose(self) -> bool:
        return self.quotes % 2 == 1 or self.blocks > 0 or self.mark != ""


def _blocks(line: str) -> int:
    """Number of blocks that a line of a shell opens, less those that it closes; Python's end in a colon."""
    blocks = () if line.rstrip().endswith(":") else _BLOCK.finditer(line)
    return sum(1 if block["opens"] else -1 for block in blocks)


def extent(text: str, start: int, stop: int, kind: ActionKind | None = None) -> Extent:
    """Action that begins at ``start`` and ends at ``stop`` at the latest; its first line tells its kind if None."""
    start += len(text[start:stop]) - len(text[start:stop].lstrip())
    fence = fence_at(text, start, stop)
    if fence is not None:
        return Extent(fenced(text, fence), fence.end, is_ended(text[:stop], fence))
    found = value_at(text, start) if text[start : start + 1] in ("{", "[") else None
    if found is not None and found[1] <= stop and not text[found[1] : stop].partition("\n")[0].strip(" .`*"):
        return Extent(text[start : found[1]], found[1], True)
    return _of_lines(text, start, stop, kind)


def cleaned(action: str) -> str:
    """An action without quotes, markdown and a sentence's full stop around it."""
    action = action.strip()
    while (inner := _unwrapped(action)) != action:
        action = inner.strip()
    return action[:-1] if _SENTENCE.fullmatch(action) else action


def _of_lines(text: str, start: int, stop: int, known: ActionKind | None) -> Extent:
    lines = text[start:stop].split("\n")
    kind = known or kind_of(lines)
    is_code = _shell_of(lines) if kind is ActionKind.SHELL else _is_code
    tried = (_taken(lines, kind, trust, is_code) for trust in reversed(_Trust))
    first = kept, closes = next(tried)
    while not closes:
        kept, closes = next(tried)
    # The lines behind a mark that does not close count for the end: a cut answer may lack its other lines.
    end = start + len("\n".join(lines[: first[0]]))
    return Extent("\n".join(lines[:kept]).rstrip(), end, False, ends_unclear(lines, kept, kind))


def _shell_of(lines: list[str]) -> Callable[[str], bool]:
    """``is_shell``, which also knows the functions that these lines define."""
    names = {found[1] for line in lines if (found := _FUNCTION.match(line)) is not None}
    return lambda line: is_shell(line) or line.partition(" ")[0] in names


def _taken(lines: list[str], kind: ActionKind, trust: _Trust, is_code: Callable[[str], bool]) -> tuple[int, bool]:
    """Number of lines of an action, and whether the marks close that continue it."""
    parts, taken = _Open(kind is ActionKind.SHELL).after(lines[0]), 1
    while taken < len(lines) and (more := 1 if parts.is_open(trust) else _more(lines, taken, kind, is_code)):
        for line in lines[taken : taken + more]:
            parts = parts.after(line)
        taken += more
    return taken, parts.closes(trust)


def _more(lines: list[str], taken: int, kind: ActionKind, is_code: Callable[[str], bool]) -> int:
    """Number of lines that continue an action in which nothing is open; 0 if it ends."""
    last, following = lines[taken - 1].rstrip(), lines[taken]
    ends_open = _ENDS_OPEN[:4] if kind is ActionKind.SHELL else _ENDS_OPEN
    if following.strip() and last and (last.endswith(ends_open) or following[0] in " \t"):
        return 1
    if kind is ActionKind.TEXT:
        return 0
    if kind is ActionKind.QUERY:
        return more_of_query(lines, taken)
    return more_of_code(lines, taken, is_code)


def _unwrapped(action: str) -> str:
    """An action without one pair of marks around it, or one mark of a quotation before it."""
    body = action.removesuffix(".")
    for left, right in _PAIRS:
        inner = body[len(left) : -len(right)]
        if body.startswith(left) and body.endswith(right) and inner and right not in inner:
            return inner
    return action.removeprefix("> ").removesuffix("**")


def kind_of(lines: list[str]) -> ActionKind:
    """Kind of the action that begins with these lines."""
    at = _next(lines, 0, "--")
    if at < len(lines) and _QUERY.match(lines[at].lstrip()):
        return ActionKind.QUERY
    return ActionKind.CODE if _CODE.match(lines[0]) else ActionKind.TEXT


def is_unfinished(text: str, kind: ActionKind | None = None) -> bool:
    """Report whether a query ends within quotes or before more has to follow, or a script within one of its parts."""
    if kind is ActionKind.SHELL:
        last = reduce(_Open.after, text.split("\n"), _Open(is_shell=True))
        return last.mark != "" or last.blocks > 0 or last.words != ()
    is_query = kind_of(text.split("\n")) is ActionKind.QUERY
    return is_query and (ends_in_quotes(text) or _UNFINISHED.search(f" {without_data(text)}") is not None)


def ends_unclear(lines: list[str], taken: int, kind: ActionKind) -> bool:
    """Report whether the line behind an action's first ``taken`` lines may be more of its code."""
    if taken == len(lines):
        return False
    following = lines[taken].rstrip()
    is_whole = (
        kind is ActionKind.TEXT
        or (kind is ActionKind.QUERY and not lines[0][:2].isupper())
        or lines[taken - 1].endswith(";")
    )
    return _is_code(following) or (not is_whole and following[:1].islower() and following[-1] not in ".!?:,")


def _is_code(line: str) -> bool:
    """Report whether a line is code, whatever stands before it."""
    is_query = _QUERY.match(line) is not None and line[:2].isupper()
    is_prose = _PROSE.match(line) is not None
    return is_query or (not is_prose and (_CODE.match(line) is not None or line.endswith((";", "{"))))


def more_of_query(lines: list[str], taken: int) -> int:
    """Number of lines that continue a query behind its first ``taken`` ones."""
    last, at = _last(lines, taken), _next(lines, taken, "--")
    if at == len(lines):
        return 0
    following = lines[at].lstrip()
    if last.endswith(";"):
        return at + 1 - taken if _fits(_QUERY.match(following), lines[0]) else 0
    if not last or last.endswith(",") or _UNFINISHED.search(last) or _fits(_CLAUSE.match(following), lines[0]):
        return at + 1 - taken
    return max(0, _statement_end(lines, at) - taken)


def is_shell(line: str) -> bool:
    """Report whether a line is one of a shell rather than of prose."""
    said = _unquoted(line)
    is_command = _SHELL.match(said) is not None or _SHELL.match(said.lstrip("({! \t")) is not None
    return not _is_sentence(said) and (is_command or _is_code(line.rstrip()))


def is_prose(line: str) -> bool:
    """Report whether a line before a script is a sentence, rather than a command that is not known."""
    said = _unquoted(line)
    return _BEFORE.match(said) is not None or _is_sentence(said)


def _unquoted(line: str) -> str:
    """A line of a shell without its quoted text and its comment."""
    return _SHELL_QUOTES.sub(lambda found: "" if found["data"] else found[0], line.strip()).rstrip()


def _is_sentence(said: str) -> bool:
    """Report whether a line without its quoted text has words of a sentence, or ends like one.

    Behind a common command, one such word may be its argument.
    """
    words = _SAYS.sub("", said)
    is_common = _COMMAND.match(words) is not None
    ends = re.search(r"[a-z][:?!]$|[a-z]{2} [a-z]+\.$", words) is not None
    return _OPERATOR.search(said) is None and (ends or len(_SENTENCE_WORDS.findall(words)) > is_common)


def more_of_code(lines: list[str], taken: int, is_code: Callable[[str], bool]) -> int:
    """Number of lines that continue code behind its first ``taken`` lines."""
    at = _next(lines, taken, "#")
    if at == len(lines):
        return 0
    continues = lines[at][0] in " \t" or is_code(lines[at].rstrip()) or (at == taken and _MORE.match(lines[at]))
    return at + 1 - taken if continues else 0


def _next(lines: list[str], at: int, comment: str) -> int:
    """Index of the next line that is neither blank nor a comment; the number of lines without one."""
    return next((i for i in range(at, len(lines)) if _says(lines[i], comment)), len(lines))


def _says(line: str, comment: str) -> bool:
    return line.strip() != "" and not line.lstrip().startswith(comment)


def _last(lines: list[str], taken: int) -> str:
    """Last line of a query's first lines, without its comment; empty if all are comments."""
    return _uncommented(next((lines[i] for i in range(taken - 1, -1, -1) if _says(lines[i], "--")), ""))


def _uncommented(line: str) -> str:
    found = _COMMENT.match(line)
    return (line if found is None else found[1]).rstrip()


def _statement_end(lines: list[str], at: int) -> int:
    """Number of lines up to the semicolon of a statement; 0 if prose or nothing precedes it."""
    for i in range(at, len(lines)):
        if _PROSE.match(lines[i]):
            return 0
        if _uncommented(lines[i]).endswith(";"):
            return i + 1
    return 0


def _fits(word: re.Match[str] | None, first: str) -> bool:
    """Report whether a word of SQL is written like the first one: a sentence begins with a capital letter.

    Behind words in small letters, as of a game (``drop``), a bracket opens a remark.
    """
    if word is None or (word[0] == "(" and not first[:2].isupper()):
        return False
    return not (word[0][:2].istitle() and not first[:2].istitle())
