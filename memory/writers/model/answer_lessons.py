"""Lessons in a model's answers, and the entries that they become."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coevo.memory.text import clean, content_words, words
from coevo.memory.writers.model.answers import AnswerReader
from coevo.memory.writers.model.checks import foreign, refusal, strange
from coevo.memory.writers.model.transcript import Shown
from coevo.memory.writers.writer import Authored
from coevo.records.entry import Entry, also_from, entry_id

LONGEST, LONGEST_SITUATION = 400, 200
"""Maximum characters of a lesson, and of a situation in which it applies or not."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson that passed the checks.

    Attributes:
        text: the lesson.
        condition: when it applies, and when not.
        attempt: the attempt that shows it.
        step: number of the step in it.
        item: the whole item, for fields of a purpose.
    """

    text: str
    condition: str
    attempt: Shown
    step: int
    item: Mapping[str, Any]


def lessons(answer: AnswerReader, most: int) -> list[Lesson]:
    """The first ``most`` lessons of an answer that pass the checks; the others are refused with a reason."""
    found: list[Lesson] = []
    known = frozenset[str]().union(*(attempt.words for attempt in answer.posed.attempts))
    for item in answer.items:
        read = _lesson(answer, item, known)
        if isinstance(read, str):
            answer.refuse(read, item)
        elif len(found) < most:
            found.append(read)
    return found


def entry(lesson: Lesson, scope: str, revision: int, zone: str = "strategy", level: str = "") -> Entry:
    """Entry of a lesson; its example is the action of the step that shows it."""
    task = lesson.attempt.episode.task
    named, said = words(task.scope), {*words(lesson.text), *words(lesson.condition)}
    concerns = [word for word in content_words(task.instruction) if word in said and word not in named]
    return Entry(
        id=entry_id(scope, lesson.text),
        strategy=lesson.text,
        condition=lesson.condition,
        example=clean(lesson.attempt.action(lesson.step)),
        keywords=clean(" ".join([*named, *(concerns or content_words(lesson.text))])),
        scope=scope,
        split=task.split,
        sources=(lesson.attempt.episode.id,),
        created=revision,
        edited=revision,
        zone=zone,
        level=level,
    )


@dataclass(frozen=True, slots=True)
class DraftEntry:
    """An entry, with the lesson that it is made of and the answer that holds it."""

    answer: AnswerReader
    lesson: Lesson
    entry: Entry


def joined(drafts: Iterable[DraftEntry]) -> dict[str, Entry]:
    """Entries by id, in order; equal ones are one entry with the sources of all."""
    entries: dict[str, Entry] = {}
    for draft in drafts:
        each = draft.entry
        entries[each.id] = also_from(entries.get(each.id, each), each.sources)
    return entries


def authored(found: Iterable[AnswerReader], drafts: Sequence[DraftEntry]) -> tuple[Authored, ...]:
    """Answers of the run's own policy, each with the items that it holds."""
    return tuple(
        Authored(drawn, tuple(_items(answer, [draft for draft in drafts if draft.answer is answer])))
        for answer in found
        if (drawn := answer.reply.drawn) is not None
    )


def _items(answer: AnswerReader, drafts: Sequence[DraftEntry]) -> Iterator[tuple[str, str]]:
    """Text of each item, and the id of its entry; the id is empty if the item became none."""
    for item in answer.fields.get("lessons", ()):
        text = item.get("lesson") if isinstance(item, Mapping) else item
        if text and isinstance(text, str):
            yield text, next((draft.entry.id for draft in drafts if draft.lesson.item is item), "")


def _lesson(answer: AnswerReader, item: Mapping[str, Any], known: frozenset[str]) -> Lesson | str:
    """The lesson of an item, or the reason to refuse it; ``known`` has the words of the attempts."""
    text, when, never = (item.get(name) for name in ("lesson", "when", "when_not"))
    for said, most in ((text, LONGEST), (when, LONGEST_SITUATION), (never, LONGEST_SITUATION)):
        if reason := refusal(said, most):
            return reason
    attempts = answer.posed.attempts
    number, step = item.get("attempt"), item.get("step")
    if type(number) is not int or type(step) is not int:
        return "shape"
    if not 1 <= number <= len(attempts) or step not in attempts[number - 1].steps:
        return "unknown"
    if reason := foreign(f"{text}", known) or strange(f"{when}", known) or strange(f"{never}", known):
        return reason
    return Lesson(_line(text), condition(_line(when), _line(never)), attempts[number - 1], step, item)


def condition(when: str, never: str) -> str:
    """Condition of an entry: when it applies, and when not."""
    return "; ".join([*([_bare(when)] if when else []), *([f"not when {_bare(never)}"] if never else [])])


def _line(text: object) -> str:
    return " ".join(str(text).split())


def _bare(situation: str) -> str:
    """A situation without the conjunction that a model may put before it."""
    first, _, rest = situation.partition(" ")
    return rest.rstrip(".") if first.lower() in ("when", "if") and rest else situation.rstrip(".")
