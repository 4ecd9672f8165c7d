"""Lessons in a model's answers, and the entries that they become."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coevo.memory.text import clean, content_words, words
from coevo.memory.writers.model.answers import AnswerReader
from coevo.memory.writers.model.transcript import Shown
from coevo.memory.writers.writer import WriterAnswer
from coevo.records.entry import Entry, also_from, entry_id
from coevo.records.inert import COMMON, either, flaw, inert

MAX_LESSON_CHARS, MAX_SITUATION_CHARS = 400, 200
"""Maximum characters of a lesson, and of a situation in which it applies or not."""
REASONS = {
    "not_json": "the answer has no JSON object of the expected form",
    "not_words": "the answer in words has another form",
    "cut": "the answer ended within this item, or before it",
    "shape": "a field is missing or has another type",
    "unknown": "it names an attempt, a step or an entry that the question does not show",
    "empty": "it has no words",
    "long": "it has too many characters",
    "control": "it has a control token of a chat template, or a control character",
    "script": "it is written in another script than the attempts",
    "ungrounded": "it shares no word with the attempts",
    "injection": "it addresses the reader as instructions to a model do",
}
"""Reasons to refuse an item."""
_THINKING = re.compile(r"</?(?:think|thinking|thought|reasoning|seed:think)>|\[/?THINK\]|◁/?think▷")
"""Marks of ``models.answers.thinking``: behind one of them, a policy's answer would be no action."""
_CONTROL = either(COMMON, _THINKING)
_INJECTION = re.compile(
    r"(?<!\bnot )(?<!\bnever )\b(?:ignore|disregard|forget|override|bypass)\b"
    r".{0,40}\b(?:previous|prior|above|earlier|all|any|your|these|the)\b"
    r".{0,40}\b(?:instructions?|prompts?|rules?|messages?|guidelines?)\b"
    r"|\b(?:system|developer)\s+(?:prompt|message|instructions?)\b"
    r"|\byou\s+are\s+(?:now|no\s+longer)\s+an?\b|\bnew\s+instructions?\b"
    r"|(?:^|\s)(?:system|assistant|developer)\s*:|https?://",
    re.IGNORECASE,
)
SHARE = 0.8
"""Least share of a text's letters that belong to scripts of the attempts."""


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
    known = frozenset[str]().union(*(attempt.words for attempt in answer.prompted.attempts))
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
class LessonCandidate:
    """An entry, with the lesson that it is made of and the answer that holds it."""

    answer: AnswerReader
    lesson: Lesson
    entry: Entry


def joined(candidates: Iterable[LessonCandidate]) -> dict[str, Entry]:
    """Entries by id, in order; equal ones are one entry with the sources of all."""
    entries: dict[str, Entry] = {}
    for candidate in candidates:
        each = candidate.entry
        entries[each.id] = also_from(entries.get(each.id, each), each.sources)
    return entries


def writer_answers(found: Iterable[AnswerReader], candidates: Sequence[LessonCandidate]) -> tuple[WriterAnswer, ...]:
    """Answers of the run's own policy, each with the items that it holds."""
    return tuple(
        WriterAnswer(drawn, tuple(_items(answer, [each for each in candidates if each.answer is answer])))
        for answer in found
        if (drawn := answer.reply.drawn) is not None
    )


def _items(answer: AnswerReader, candidates: Sequence[LessonCandidate]) -> Iterator[tuple[str, str]]:
    """Text of each item, and the id of its entry; the id is empty if the item became none."""
    for item in answer.fields.get("lessons", ()):
        text = item.get("lesson") if isinstance(item, Mapping) else item
        if text and isinstance(text, str):
            yield text, next((candidate.entry.id for candidate in candidates if candidate.lesson.item is item), "")


def _lesson(answer: AnswerReader, item: Mapping[str, Any], known: frozenset[str]) -> Lesson | str:
    """The lesson of an item, or the reason to refuse it; ``known`` has the words of the attempts."""
    text, when, never = (item.get(name) for name in ("lesson", "when", "when_not"))
    for said, most in ((text, MAX_LESSON_CHARS), (when, MAX_SITUATION_CHARS), (never, MAX_SITUATION_CHARS)):
        if reason := refusal(said, most):
            return reason
    attempts = answer.prompted.attempts
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


def refusal(text: object, most: int) -> str | None:
    """Reason to refuse a text on its own account; None if there is none."""
    if not isinstance(text, str):
        return "shape"
    line = " ".join(text.split())
    if len(line) > most:
        return "long"
    if flaw(line) or inert(line, _CONTROL) != line:
        return "control"
    return "injection" if _INJECTION.search(line) else None


def foreign(text: str, words: frozenset[str]) -> str | None:
    """Reason to refuse a lesson beside the words of the attempts that taught it; None if there is none."""
    said = content_words(text)
    if not said:
        return "empty"
    if reason := strange(text, words):
        return reason
    return None if words.intersection(said) or _pairs(said) & _pairs(words) else "ungrounded"


def strange(text: str, words: frozenset[str]) -> str | None:
    """Reason to refuse a text that is written in another script than the attempts; None if it is not."""
    letters, known = [letter for letter in text if letter.isalpha()], scripts(words)
    return "script" if known and sum(script(letter) in known for letter in letters) < SHARE * len(letters) else None


def scripts(words: Iterable[str]) -> set[str]:
    """Scripts of the letters of words."""
    return {script(letter) for letter in set("".join(words)) if letter.isalpha()}


def script(letter: str) -> str:
    """Script of a letter, as the first word of its Unicode name gives it."""
    return unicodedata.name(letter, "").partition(" ")[0]


def _pairs(words: Iterable[str]) -> set[str]:
    """Pairs of neighbouring characters outside ASCII: scripts without blanks have no other words."""
    both = (word[index : index + 2] for word in words if not word.isascii() for index in range(len(word) - 1))
    return {pair for pair in both if not pair.isascii()}
