"""Reading of a model's answers: JSON, item by item.

``fields_of`` finds the object. An answer that was cut off keeps its complete items. An item that is not what was asked
for is refused by itself, with a reason.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pydantic_core import from_json

from coevo.memory.writers.model import words
from coevo.memory.writers.model.salvage import salvaged
from coevo.memory.writers.model.transcript import Shown
from coevo.memory.writers.writer import Ask, Reject
from coevo.records.lenient import TOKEN, lenient_at
from coevo.records.writing import Question, Reply

MAX_SCANNED_CHARS = 200_000
"""Maximum characters of an answer that are read."""
MAX_REFUSED_CHARS = 500
"""Maximum characters of a refused item that are kept."""


@dataclass(frozen=True)
class PromptedQuestion:
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
        prompted: the question.
        reply: what was replied to it.
        fields: fields of the answer; empty if it cannot be read.
        items: objects of its list that are left to be checked.
        rejects: refused items so far.
    """

    def __init__(self, prompted: PromptedQuestion, reply: Reply) -> None:
        self.prompted = prompted
        self.reply = reply
        self.fields: Mapping[str, Any] = {}
        self.items: list[Mapping[str, Any]] = []
        self.rejects: list[Reject] = []

    def refuse(self, reason: str, item: object) -> None:
        """Count an item as refused, and keep the beginning of it."""
        text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=True, default=repr)
        question = self.prompted.question
        self.rejects.append(Reject(question.purpose, question.episodes, reason, text[:MAX_REFUSED_CHARS]))


def answers(ask: Ask, prompted: Sequence[PromptedQuestion], name: str = "lessons") -> list[AnswerReader]:
    """Ask all questions at once and read their answers; ``name`` is the field with the list of items."""
    if not prompted:
        return []
    replies = ask([each.question for each in prompted])
    return [_answer(each, reply, name) for each, reply in zip(prompted, replies, strict=True)]


def counts(found: Sequence[AnswerReader]) -> dict[str, float]:
    """Metrics of answers: questions, what they leave out, those without an answer, and refused items by reason."""
    reasons = [reject.reason for answer in found for reject in answer.rejects]
    totals = {"questions": len(found), "unanswered": sum(bool(answer.reply.fault) for answer in found)}
    totals |= {"rejected": len(reasons)}
    totals |= _left_out([answer.prompted for answer in found])
    totals |= {f"rejected_{reason}": reasons.count(reason) for reason in sorted(set(reasons))}
    return {name: float(total) for name, total in totals.items()}


def _left_out(prompted: Sequence[PromptedQuestion]) -> dict[str, int]:
    """Attempts, notes and steps for which questions had no room, and texts that they do not show to their end."""
    attempts = [shown for each in prompted for shown in each.attempts]
    return {
        "left_out_attempts": sum(each.attempts_left_out for each in prompted),
        "left_out_notes": sum(each.notes_left_out for each in prompted),
        "left_out_steps": sum(len(shown.episode.turns) - len(shown.steps) for shown in attempts),
        "shortened_texts": sum(shown.shortened for shown in attempts),
    }


def rejects_of(found: Sequence[AnswerReader]) -> tuple[Reject, ...]:
    """All refused items, in order."""
    return tuple(reject for answer in found for reject in answer.rejects)


def _answer(prompted: PromptedQuestion, reply: Reply, name: str) -> AnswerReader:
    answer = AnswerReader(prompted, reply)
    if reply.fault:
        return answer
    fields, whole = _read(prompted, replace(reply, text=reply.text[:MAX_SCANNED_CHARS]), name)
    if fields is None:
        form = "not_json" if prompted.question.schema else "not_words"
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


def _read(prompted: PromptedQuestion, reply: Reply, name: str) -> tuple[dict[str, Any] | None, bool]:
    """Fields of a reply and whether it is whole: JSON if the question has a schema, else words."""
    return fields_of(reply.text, name) if prompted.question.schema else words.read(reply, prompted.attempts[0].episode)


MAX_READ_CHARS = 4_000_000
"""Maximum characters that are read in vain, in the search for strict JSON."""
MIN_ATTEMPT_CHARS = 400
"""Characters that an attempt counts for at least."""
NEAR, LISTS = 8, 2
"""Maximum number of braces before a list at which its object is looked for, and of lists, where none is strict."""
ENDS = ("}", "]}")
"""Brackets that an answer may lack after its last whole item."""
ITEM = 3
"""Depth of an item: in the list of the answer's object."""
_STRICT = re.compile(r"\{(?=\s*[\"}])")
_BEGIN = re.compile(r"\{(?=\s*(?:[\"'/#]|\{|\Z))")
"""Brace of what may be an object, in strict JSON or not."""
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*+"?)(\s*:)?|[{}\[\]]', re.DOTALL)
"""A text, which may be cut off, with the colon behind a name; or a bracket."""


class Doubled(list[tuple[str, Any]]):
    """Names and values of an object that names a field twice: nobody knows which value is meant."""


def fields_of(text: str, name: str) -> tuple[dict[str, Any] | None, bool]:
    """Fields of the last object with a list of this name, and whether the object ends.

    An object that was cut off counts where none is whole. None stands for an answer that cannot be read. An answer that
    is a text in JSON is read as this text.
    """
    said = _decoded_text(text)
    text = text if said is None else said
    found = _whole(text, name)
    if found:
        last = found[-1]
        return (last if isinstance(last, dict) else None), True
    tails = [text[start:] for start in _begun(text, name)]
    for tail in reversed(tails):
        if isinstance(made := _parsed(_mended(tail), name), dict | Doubled):
            return (_fuller(made, text, name) if isinstance(made, dict) else None), True
    for tail in tails:
        if isinstance(made := _ended([tail, *_mended(tail)], name), dict | Doubled):
            return (_fuller(made, text, name) if isinstance(made, dict) else None), True
    return _in_parts(text, tails, name)


def _decoded_text(text: str) -> str | None:
    """Text that an answer is in JSON; None if it is none."""
    try:
        made = _DECODER.decode(text.strip()) if text.lstrip().startswith('"') else None
    except (ValueError, RecursionError):
        return None
    return made if isinstance(made, str) else None


def _in_parts(text: str, tails: Sequence[str], name: str) -> tuple[dict[str, Any] | None, bool]:
    """Fields of an object that does not end, or of one whose items can only be read one by one."""
    found = (_cut(tail, name) or _parsed(_mended(tail, cut=True), name) for tail in tails)
    cut = next((each for each in found if each is not None), None)
    if cut is not None and not isinstance(cut, dict):
        return None, True
    parts = None if any(map(_is_cut, tails)) else salvaged(text, name)
    # The last item of an object that was cut is not whole.
    if parts is not None and (cut is None or parts.readable >= len(cut[name]) - 1):
        return parts.fields, parts.whole
    return cut, cut is None


def _fuller(made: dict[str, Any], text: str, name: str) -> dict[str, Any]:
    """An object that was mended, or its parts if more of its items can be read one by one."""
    if all(isinstance(item, Mapping) for item in made[name]):
        return made
    parts, count = salvaged(text, name), sum(isinstance(item, Mapping) for item in made[name])
    return made if parts is None or parts.readable <= count else parts.fields


def _is_cut(text: str) -> bool:
    """Report whether an object has no flaw but that its end is missing."""
    try:
        from_json(text)
    except ValueError as error:
        return f"{error}".startswith("EOF while")
    return False


def _whole(text: str, name: str) -> list[object]:
    """Whole objects of the asked form in strict JSON, those with a field twice included."""
    found, left, behind = list[object](), MAX_READ_CHARS, 0
    for brace in _STRICT.finditer(text):
        if left <= 0 or brace.start() < behind:
            continue
        made, end = _decoded(text, brace.start())
        if _fits(made, name, text[brace.start() : end]):
            found.append(made)
            behind = end
        else:
            left -= max(end - brace.start(), MIN_ATTEMPT_CHARS)
    return found


def _begun(text: str, name: str) -> list[int]:
    """Braces at which an object with the list may begin, in order: the nearest ones before its name."""
    names = [mark.start() for mark in re.finditer(rf"[\"']{re.escape(name)}[\"']\s*:\s*\[", text)]
    braces = [mark.start() for mark in _BEGIN.finditer(text)]
    near = ([brace for brace in braces if brace < start][-NEAR:] for start in names[-LISTS:])
    return sorted({brace for each in near for brace in each})


def _fits(made: object, name: str, text: str) -> bool:
    """Return True for an object of the asked form, or one with a field twice whose text names the list."""
    if isinstance(made, Doubled):
        return f'"{name}"' in text
    return isinstance(made, dict) and isinstance(made.get(name), list)


def _decoded(text: str, start: int) -> tuple[object, int]:
    """The object that begins at a place, and its end; None, and where the reading ended, if there is none."""
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return None, max(error.pos, start + 1)
    except (ValueError, RecursionError):
        return None, len(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | Doubled:
    made = dict(pairs)
    return made if len(made) == len(pairs) else Doubled(pairs)


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


class _Bracket(NamedTuple):
    """A bracket outside of texts and comments; one that closes counts to the depth that it ends."""

    opens: bool
    start: int
    end: int
    depth: int


def _brackets(text: str, pattern: re.Pattern[str]) -> Iterator[_Bracket]:
    """Brackets of the value at the beginning of a text, up to its end."""
    depth = 0
    for token in pattern.finditer(text):
        if token[0] in ("{", "["):
            depth += 1
            yield _Bracket(True, token.start(), token.end(), depth)
        elif token[0] in ("}", "]"):
            yield _Bracket(False, token.start(), token.end(), depth)
            depth -= 1
            if depth == 0:
                return


def _parsed(texts: Iterable[str], name: str) -> object:
    """First object of the asked form at the beginning of a text, read strictly, else leniently."""
    for text in texts:
        made, _ = _decoded(text, 0)
        lenient = lenient_at(text, 0) if made is None else None
        made = made if lenient is None else lenient[0]
        if _fits(made, name, text):
            return made
    return None


def _mended(text: str, cut: bool = False) -> list[str]:
    """The object at the beginning of a text, each of its items in strict JSON, or as a text.

    Quotes of JSON alone delimit texts in the first one, those of Python and comments count in the second.

    Args:
        text: the object, and what follows it.
        cut: True to end the object behind the item in which it was cut off.
    """
    made = (_patched(text, pattern, cut) for pattern in (_TOKEN, TOKEN))
    return [each for each in made if each is not None]


def _patched(text: str, pattern: re.Pattern[str], cut: bool) -> str | None:
    parts, begun, done, bracket = list[str](), 0, 0, None
    for bracket in _brackets(text, pattern):
        if bracket.depth != ITEM:
            continue
        if bracket.opens:
            begun = bracket.start
        elif not isinstance(_decoded(item := text[begun : bracket.end], 0)[0], dict | list):
            parts += [text[done:begun], _mended_item(item)]
            done = bracket.end
    if not cut:
        return "".join([*parts, text[done:]])
    is_cut = bracket is not None and bracket.depth - (not bracket.opens) >= ITEM and text[begun] == "{"
    return "".join([*parts, text[done:begun], json.dumps(text[begun:]), "]}"]) if is_cut else None


def _mended_item(item: str) -> str:
    """An item in strict JSON, if it can be read and no text in it holds a raw line break; else a text."""
    found = lenient_at(item, 0)
    is_broken = any("\n" in (token["string"] or "") for token in TOKEN.finditer(item))
    is_read = found is not None and found[1] == len(item) and not is_broken
    return json.dumps(found[0] if found is not None and is_read else item)


def _ended(texts: Iterable[str], name: str) -> object:
    """An object whose text ends after a whole item, with the brackets that it lacks."""
    return _parsed((f"{text.rstrip().rstrip(',')}{end}" for text in texts for end in ENDS), name)


def _cut(text: str, name: str) -> dict[str, Any] | None:
    """An object that does not end, as far as it can be read."""
    try:
        made = from_json(text, allow_partial=True)
    except ValueError:
        return None
    return made if _fits(made, name, text) and not _repeats(text) else None


def _repeats(text: str) -> bool:
    """Return True if the object at the beginning of a text, or one in it, names a field twice."""
    # ``from_json`` would keep the last value alone. It also reads up to a bracket too many, so that one may come here.
    held: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        if token[0] in ("{", "["):
            held.append(set())
        elif token[0] in ("}", "]"):
            held.pop()
            if not held:
                return False
        elif token[2] is not None:
            field = _name(token[1])
            if field in held[-1]:
                return True
            held[-1].add(field)
    return False


def _name(text: str) -> str:
    """Name of a field as it is meant; behind the place where ``from_json`` stopped it may be no JSON."""
    try:
        return str(json.loads(text))
    except ValueError:
        return text
