"""Lessons and scopes from outside, checked."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from coevo.memory.text import terms
from coevo.memory.validate import shortened, vet
from coevo.records.entry import MAX_TEXT_CHARS, Entry, entry_id
from coevo.records.inert import encodable, flaw
from coevo.utilities.errors import CoevoError

ScopeName = str | Mapping[str, str]
"""A scope: any text, or names of a user, an agent and a task, such as ``{"user": "ann"}``."""
LessonText = str | Mapping[str, str]
"""A lesson: its text, or some of ``FIELDS`` with at least ``strategy``."""

NAMES = ("user", "agent", "task")
"""Names that a scope may consist of."""
FIELDS = ("strategy", "condition", "example", "keywords")
"""Fields that a lesson may have, see ``coevo.records.entry.Entry``."""


def scope_text(scope: ScopeName) -> str:
    """Scope as an entry holds it; different names give different texts.

    Raises:
        CoevoError: it is no text, has an unknown or empty name, or cannot stand in the bank.
    """
    text = scope if isinstance(scope, str) else _joined(scope)
    if len(text) > MAX_TEXT_CHARS:
        raise CoevoError(f"scope = {shortened(text)}: has {len(text)} characters: shorten it to {MAX_TEXT_CHARS}")
    problem = flaw(text)
    if problem is not None:
        raise CoevoError(f"scope = {shortened(text)}: {problem}: write one line of plain text")
    return text


def read_lessons(lessons: Sequence[LessonText], scope: ScopeName, revision: int) -> list[Entry]:
    """Candidates for the bank; of equal ones the first counts.

    Raises:
        CoevoError: a lesson is not acceptable; names its position, the field and what would be right.
    """
    if isinstance(lessons, (str, Mapping)) or not isinstance(lessons, Sequence):
        raise CoevoError(f"lessons = {shortened(lessons)}: is no list: write [lesson, ...]")
    within = scope_text(scope)
    read = [_entry(lesson, within, revision, f"lesson {place}") for place, lesson in enumerate(lessons)]
    return list({entry.id: entry for entry in reversed(read)}.values())[::-1]


def _entry(lesson: LessonText, scope: str, revision: int, where: str) -> Entry:
    given = {"strategy": lesson} if isinstance(lesson, str) else lesson
    if not isinstance(given, Mapping):
        raise CoevoError(f"{where}: {shortened(lesson)} is no lesson: write a text, or a mapping of {_listed(FIELDS)}")
    unknown = [name for name in given if name not in FIELDS]
    if unknown:
        raise CoevoError(f"{where}: field {shortened(unknown[0])} is unknown: the fields are {_listed(FIELDS)}")
    texts = {name: given.get(name, "") for name in FIELDS}
    strategy = texts["strategy"] if isinstance(texts["strategy"], str) else ""
    if texts["keywords"] == "":
        texts["keywords"] = _words(strategy, texts["condition"])
    row = {
        **texts, "id": entry_id(scope, encodable(strategy)), "scope": scope, "split": "train",
        "sources": [], "created": revision, "edited": revision, "retired": -1, "zone": "strategy", "level": "",
    }  # fmt: skip
    return vet(row, where)


def _words(strategy: str, condition: object) -> str:
    """Keywords of a lesson without any: the words of its condition, else those of the lesson."""
    words = " ".join(dict.fromkeys(terms(condition if isinstance(condition, str) and condition.strip() else strategy)))
    return words[:MAX_TEXT_CHARS] or strategy


def _joined(names: Mapping[str, str]) -> str:
    if not isinstance(names, Mapping):
        raise CoevoError(f"scope = {shortened(names)}: is no scope: write a text, or a mapping of {_listed(NAMES)}")
    for name, value in names.items():
        if name not in NAMES:
            raise CoevoError(f"scope: {shortened(name)} is unknown: the names are {_listed(NAMES)}")
        if not isinstance(value, str) or not value or flaw(value):
            raise CoevoError(f"scope: {name} = {shortened(value)}: is no name: write one line of text, or leave it out")
    # The values are escaped, so that none can pose as two names.
    return urlencode([(name, names[name]) for name in NAMES if name in names])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
