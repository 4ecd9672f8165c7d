"""Code without a fence: how its lines show that it is code, and which of the following lines belong to it.

Prose behind a line of code is recognized by its first words; lines of code behind prose are never guessed at.
"""

import re
from enum import Enum, auto

_QUERY = re.compile(
    r"(?:(?:select|insert|update|delete|with|create|alter|drop|explain)\b|(?:start|begin)\s+(?:transaction|work)"
    r"|(?:begin|commit|rollback|end)(?:\s+(?:transaction|work))?\s*;|set\s+\S+\s*(?:=|to\b)|(?:replace|merge)\s+into\b"
    r"|truncate\s+table\b|(?:pragma|savepoint)\s+\w)",
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
    r"(?:^|[\s(])(?:select|distinct|from|where|by|and|or|on|set|values|as|in|not|join|union|all|into|table|then|else|when"
    r"|having|returning|exists|between|like|is|with|using|case|begin)$",
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
_MORE = re.compile(r"[A-Za-z_][\w.]*\(|\$[({]?\w|[)\]}]|(?:else|try|finally)\b.*:|(?:raise|assert|del|return|yield)\b")
"""Line that is code where the lines before it are."""


class ActionKind(Enum):
    """Kind of an action by its first line."""

    TEXT = auto()
    QUERY = auto()
    CODE = auto()


def kind_of(lines: list[str]) -> ActionKind:
    """Kind of the action that begins with these lines."""
    at = _next(lines, 0, "--")
    if at < len(lines) and _QUERY.match(lines[at].lstrip()):
        return ActionKind.QUERY
    return ActionKind.CODE if _CODE.match(lines[0]) else ActionKind.TEXT


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


def more_of_code(lines: list[str], taken: int) -> int:
    """Number of lines that continue code behind its first ``taken`` lines."""
    at = _next(lines, taken, "#")
    if at == len(lines):
        return 0
    continues = lines[at][0] in " \t" or _is_code(lines[at].rstrip()) or (at == taken and _MORE.match(lines[at]))
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
