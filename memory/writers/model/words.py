"""The words form of a reflection: a question and an answer of words, for policies with a word-level tokenizer.

The question is ``% TASK # 1 > OBSERVATION : ACTION : FEEDBACK # 2 > ... ? yes``; it ends with ``?`` if the outcome is
not told. The answer is ``% 2 / 4 ? yes # 1 LESSON # 2 LESSON``: completed subtasks, all subtasks, the prediction,
and each lesson behind the number of the step that shows it. Marks within text are removed: they would act.
"""

import re
from collections.abc import Mapping
from typing import Any

from coevo.memory.text import clean
from coevo.memory.writers.model.transcript import Shown, SizeFunction, last_first
from coevo.records.episode import Episode, Turn
from coevo.records.inert import COMMON, either, inert, whole_words
from coevo.records.writing import Question, Reply

MAX_NUMBER = 64
"""Largest number of a step, and of subtasks, that has a word."""
MAX_SITUATION_CHARS = 180
"""Maximum characters of the situation of a lesson: the task."""
PART, STEP, OUTCOME, OF, SAW, THEN = "%", "#", "?", "/", ">", ":"
MARKS = (PART, STEP, OUTCOME, OF, SAW, THEN)
YES, NO, ASKED = "yes", "no", "reflect"
NUMBERS = tuple(map(str, range(MAX_NUMBER + 1)))
WORDS = (*MARKS, YES, NO, ASKED, *NUMBERS)
"""Words that the form adds to an environment's vocabulary."""
PREDICTIONS = (YES, NO)
"""Words of an answer that predict the outcome."""
CHOICES = (STEP, *NUMBERS)
"""Words of an answer that choose the steps of its lines, and count its subtasks."""

_MARKED = either(COMMON, whole_words(MARKS))
_HEAD = re.compile(rf"{PART} (\d{{1,3}}) {OF} (\d{{1,3}}) {re.escape(OUTCOME)} ({YES}|{NO})(?: (.*))?", re.ASCII)
_ITEM = re.compile(r"(\d{1,3}) (.+)", re.ASCII)


def attempt(episode: Episode, room: int, verdict: bool, size: SizeFunction = len) -> Shown:
    """Transcript of an attempt in words.

    Args:
        episode: attempt, at least one step.
        room: maximum size; the last steps are shown first, and the first one.
        verdict: False leaves out the outcome and the feedback on the last action, which may name it.
        size: measures a text, in the unit of ``room``.
    """
    last, outcome = len(episode.turns), f" {YES if episode.success else NO}" if verdict else ""
    head, end = f"{PART} {_data(episode.task.instruction)}", f" {OUTCOME}{outcome}"
    lines = [_step(n, turn, verdict or n < last) for n, turn in enumerate(episode.turns[:MAX_NUMBER], 1)]
    kept = last_first([size(line) for line in lines], room - size(head) - size(end))
    return Shown(episode, f"{head}{''.join(lines[number - 1] for number in kept)}{end}", frozenset(kept))


def question(purpose: str, shown: Shown) -> Question:
    """The question about an attempt; its answer has no schema."""
    return Question(purpose, shown.episode.task.id, (shown.episode.id,), ASKED, shown.text)


def read(reply: Reply, episode: Episode) -> tuple[dict[str, Any] | None, bool]:
    """Fields of an answer as the prose prompts name them, None if it has another form; and whether it ended."""
    found = _HEAD.fullmatch(" ".join(reply.text.split()))
    if found is None or not 0 < int(found[2]) <= MAX_NUMBER or int(found[1]) > int(found[2]):
        return None, True
    done, parts = int(found[1]), int(found[2])
    subtasks = [{"subtask": f"part {part} of {parts}", "done": part <= done} for part in range(1, parts + 1)]
    situation = clean(episode.task.instruction)[:MAX_SITUATION_CHARS]
    before, *items = f" {found[4] or ''}".split(f" {STEP} ")
    lessons = [_lesson(item, situation) for item in [*before.split(maxsplit=0), *items]]
    return {"subtasks": subtasks, "success": found[3] == YES, "lessons": lessons}, reply.finished


def written(fields: Mapping[str, Any]) -> str:
    """Answer of these fields, the inverse of ``read``."""
    done = sum(part["done"] for part in fields["subtasks"])
    head = f"{PART} {done} {OF} {len(fields['subtasks'])} {OUTCOME} {YES if fields['success'] else NO}"
    return "".join([head, *(f" {STEP} {item['step']} {_data(item['lesson'])}" for item in fields["lessons"])])


def _lesson(item: str, situation: str) -> dict[str, Any] | str:
    """A lesson with the fields of the prose prompts; the text itself if it has another form."""
    found = _ITEM.fullmatch(item.strip())
    if found is None:
        return item
    return {"lesson": found[2], "when": situation, "when_not": "", "attempt": 1, "step": int(found[1])}


def _step(number: int, turn: Turn, answered: bool) -> str:
    feedback = f" {THEN} {_data(turn.feedback)}" if answered else ""
    return f" {STEP} {number} {SAW} {_data(turn.observation)} {THEN} {_data(turn.action)}{feedback}"


def _data(text: str) -> str:
    return " ".join(inert(text, _MARKED).split())
