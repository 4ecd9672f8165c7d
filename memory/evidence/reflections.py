"""Reflections (RetroAgent section 3.1): potential, prediction of success and lessons of an episode, in a fixed form.

    Subtask: <description> | done
    Subtask: <description> | open
    Success: yes
    Lesson: <one line>

At least one subtask, one prediction (yes or no), any number of lessons; other lines are ignored. ``parse`` reads the
reflections of rules and models alike; text in another form is malformed and has no effect.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coevo.memory.text import MAX_SCANNED_CHARS, clean
from coevo.records.episode import Episode
from coevo.records.writing import Drawn

LINE = re.compile(r"\s*(subtask|success|lesson)\s*:(.*)", re.IGNORECASE)
STATUS = {"done": True, "open": False}
ANSWER = {"yes": True, "no": False}


@dataclass(frozen=True, slots=True)
class Subtask:
    """A part of the task, and whether it was completed."""

    text: str
    done: bool


@dataclass(frozen=True, slots=True)
class Reflection:
    """A parsed reflection on an episode.

    Attributes:
        subtasks: parts of the task.
        success: predicted success; None if the reflection is malformed.
        lessons: inert single lines, best first.
    """

    subtasks: tuple[Subtask, ...]
    success: bool | None
    lessons: tuple[str, ...]

    @property
    def potential(self) -> float:
        """Fraction of completed subtasks (phi); 0 for a malformed reflection."""
        return sum(subtask.done for subtask in self.subtasks) / len(self.subtasks) if self.subtasks else 0.0


MALFORMED = Reflection((), None, ())
"""Result for text in any other form."""


@dataclass(frozen=True, slots=True)
class Reflected:
    """A reflection, with its episode and its reference.

    Attributes:
        episode: reflected episode.
        reference: episode that it was compared with; None without one.
        reflection: what was told.
        drawn: tokens of the answer; None if the policy does not learn from them.
        answered: False if there was no answer; the reflection is then malformed, and does not count.
    """

    episode: Episode
    reference: Episode | None
    reflection: Reflection
    drawn: Drawn | None = None
    answered: bool = True


def figures(told: Sequence[Reflected]) -> dict[str, float]:
    """Metrics of reflections: accuracy of predictions, mean potential, and its error against true progress."""
    told = [each for each in told if each.answered]
    if not told:
        return {"reflections": 0.0}
    errors = [
        abs(each.reflection.potential - each.episode.progress) for each in told if each.episode.progress is not None
    ]
    count = len(told)
    return {
        "reflections": float(count),
        "malformed": float(sum(each.reflection.success is None for each in told)),
        "accuracy": sum(each.reflection.success is each.episode.success for each in told) / count,
        "potential": sum(each.reflection.potential for each in told) / count,
        "pairwise": sum(each.reference is not None for each in told) / count,
    } | ({"potential_error": sum(errors) / len(errors)} if errors else {})


def recalls(told: Sequence[Reflected]) -> dict[str, float]:
    """Share of right predictions among successes and among failures, and their mean, the balanced accuracy.

    A share is missing where no episode has the outcome; a malformed reflection predicts nothing right.
    """
    told, names = [each for each in told if each.answered], {True: "recall_success", False: "recall_failure"}
    sides = {name: [each for each in told if each.episode.success is won] for won, name in names.items()}
    found = {
        name: sum(each.reflection.success is each.episode.success for each in side) / len(side)
        for name, side in sides.items()
        if side
    }
    return found | ({"balanced_accuracy": sum(found.values()) / 2} if len(found) == 2 else {})


def write(reflection: Reflection) -> str:
    """Format a reflection; its texts become inert lines."""
    success = "yes" if reflection.success else "no"
    subtasks = (f"Subtask: {clean(part.text)} | {'done' if part.done else 'open'}" for part in reflection.subtasks)
    return "\n".join([*subtasks, f"Success: {success}", *(f"Lesson: {clean(text)}" for text in reflection.lessons)])


def parse(text: str) -> Reflection:
    """Parse a reflection; ``MALFORMED`` for text in any other form."""
    try:
        parts = list(_parts(text))
    except ValueError:
        return MALFORMED
    subtasks = tuple(part for part in parts if isinstance(part, Subtask))
    answers = [part for part in parts if isinstance(part, bool)]
    lessons = dict.fromkeys(part for part in parts if isinstance(part, str))
    return Reflection(subtasks, answers[0], tuple(lessons)) if subtasks and len(answers) == 1 else MALFORMED


def _parts(text: str) -> Iterator[Subtask | bool | str]:
    """Subtasks, predictions and lessons in order. Raises ``ValueError`` at a malformed line."""
    if len(text) > MAX_SCANNED_CHARS:
        raise ValueError(f"more than {MAX_SCANNED_CHARS} characters")
    for line in text.splitlines():
        if found := LINE.fullmatch(line):
            yield _part(found[1].lower(), found[2].strip())


def _part(label: str, said: str) -> Subtask | bool | str:
    if label == "success":
        return _known(ANSWER, said)
    what, _, status = said.rpartition("|") if label == "subtask" else (said, "", "")
    if not (what := clean(what)):
        raise ValueError("nothing is said")
    return Subtask(what, _known(STATUS, status)) if label == "subtask" else what


def _known(words: dict[str, bool], said: str) -> bool:
    word = said.strip().lower()
    if word not in words:
        raise ValueError(f"{word!r} is none of {', '.join(words)}")
    return words[word]
