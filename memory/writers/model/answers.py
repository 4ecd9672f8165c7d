"""Reading of a model's answers: JSON, item by item.

``objects`` finds the object. An answer that was cut off keeps its complete items. An item that is not what was asked
for is refused by itself, with a reason.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coevo.memory.writers.model import words
from coevo.memory.writers.model.answer_objects import fields_of
from coevo.memory.writers.model.transcript import Shown
from coevo.memory.writers.writer import Ask, Reject
from coevo.records.writing import Question, Reply

SCANNED = 200_000
"""Maximum characters of an answer that are read."""
AUDITED = 500
"""Maximum characters of a refused item that are kept."""


@dataclass(frozen=True)
class Posed:
    """A question with the attempts that it shows.

    Attributes:
        question: the question.
        attempts: those that it shows, which may leave out steps.
        attempts_left_out: number of attempts for which it has no room.
        notes_left_out: number of notes likewise.
    """

    question: Question
    attempts: Sequence[Shown]
    attempts_left_out: int = 0
    notes_left_out: int = 0


class AnswerReader:
    """Reader of a question's answer; it counts what is refused.

    Attributes:
        posed: the question.
        reply: what was replied to it.
        fields: fields of the answer; empty if it cannot be read.
        items: objects of its list that are left to be checked.
        rejects: refused items so far.
    """

    def __init__(self, posed: Posed, reply: Reply) -> None:
        self.posed = posed
        self.reply = reply
        self.fields: Mapping[str, Any] = {}
        self.items: list[Mapping[str, Any]] = []
        self.rejects: list[Reject] = []

    def refuse(self, reason: str, item: object) -> None:
        """Count an item as refused, and keep the beginning of it."""
        text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=True, default=repr)
        question = self.posed.question
        self.rejects.append(Reject(question.purpose, question.episodes, reason, text[:AUDITED]))


def answers(ask: Ask, posed: Sequence[Posed], name: str = "lessons") -> list[AnswerReader]:
    """Ask all questions at once and read their answers; ``name`` is the field with the list of items."""
    if not posed:
        return []
    replies = ask([each.question for each in posed])
    return [_answer(each, reply, name) for each, reply in zip(posed, replies, strict=True)]


def counts(found: Sequence[AnswerReader]) -> dict[str, float]:
    """Metrics of answers: questions, what they leave out, those without an answer, and refused items by reason."""
    reasons = [reject.reason for answer in found for reject in answer.rejects]
    totals = {"questions": len(found), "unanswered": sum(bool(answer.reply.fault) for answer in found)}
    totals |= {"rejected": len(reasons)}
    totals |= _left_out([answer.posed for answer in found])
    totals |= {f"rejected_{reason}": reasons.count(reason) for reason in sorted(set(reasons))}
    return {name: float(total) for name, total in totals.items()}


def _left_out(posed: Sequence[Posed]) -> dict[str, int]:
    """Attempts, notes and steps for which questions had no room, and texts that they do not show to their end."""
    attempts = [shown for each in posed for shown in each.attempts]
    return {
        "left_out_attempts": sum(each.attempts_left_out for each in posed),
        "left_out_notes": sum(each.notes_left_out for each in posed),
        "left_out_steps": sum(len(shown.episode.turns) - len(shown.steps) for shown in attempts),
        "shortened_texts": sum(shown.shortened for shown in attempts),
    }


def rejects_of(found: Sequence[AnswerReader]) -> tuple[Reject, ...]:
    """All refused items, in order."""
    return tuple(reject for answer in found for reject in answer.rejects)


def _answer(posed: Posed, reply: Reply, name: str) -> AnswerReader:
    answer = AnswerReader(posed, reply)
    if reply.fault:
        return answer
    fields, whole = _read(posed, replace(reply, text=reply.text[:SCANNED]), name)
    if fields is None:
        form = "not_json" if posed.question.schema else "not_words"
        answer.refuse(form if reply.finished else "cut", reply.text)
        return answer
    answer.fields = fields
    _sort(answer, fields[name], whole)
    return answer


def _sort(answer: AnswerReader, items: Sequence[object], whole: bool) -> None:
    """Accept or refuse each item; the last one of an answer that was cut is not complete."""
    for index, item in enumerate(items, 1):
        if not whole and index == len(items):
            answer.refuse("cut", item)
        elif isinstance(item, Mapping):
            answer.items.append(item)
        else:
            answer.refuse("shape", item)


def _read(posed: Posed, reply: Reply, name: str) -> tuple[dict[str, Any] | None, bool]:
    """Fields of a reply and whether it is whole: JSON if the question has a schema, else words."""
    return fields_of(reply.text, name) if posed.question.schema else words.read(reply, posed.attempts[0].episode)
