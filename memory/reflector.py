"""The built-in reflector: a rule that reflects on an episode by its own text, its outcome and its progress.

It is told the outcome, as in RetroAgent's in-context variant. Its lessons quote feedback (``memory.lessons``).
"""

from collections.abc import Sequence
from fractions import Fraction

from memory.exhibits import pivot
from memory.lessons import lessons
from memory.references import Pair
from memory.reflections import Reflection, Subtask, write
from memory.text import words
from records.entry import Entry
from records.episode import Episode

FINEST = 100
"""Most subtasks that a progress is told in."""


def reflect(episode: Episode, reference: Episode | None, most: int) -> str:
    """A reflection in the form of ``memory.reflections``.

    Args:
        episode: what is reflected on.
        reference: an episode with the other outcome to hold it against (pairwise induction), None for single induction.
        most: lessons at most.
    """
    quotes = dict.fromkeys(lesson.strategy for lesson in _induced(episode, reference))
    return write(Reflection(_subtasks(episode), episode.success, tuple(quotes)[:most]))


def reference_of(episode: Episode, pair: Pair) -> Episode | None:
    """The latest kept episode with the other outcome: of the task itself, else of its kind, else any."""

    def nearness(place: int) -> tuple[bool, bool, int]:
        task = others[place].task
        return task.id == episode.task.id, task.kind == episode.task.kind, place

    others = pair.failures if episode.success else pair.successes
    return others[max(range(len(others)), key=nearness)] if others else None


def _subtasks(episode: Episode) -> tuple[Subtask, ...]:
    """As many as tell the environment's progress; where it knows none, the task is its only subtask."""
    if episode.progress is None:
        return (Subtask("the task", episode.success),)
    share = Fraction(episode.progress).limit_denominator(FINEST)
    parts = range(1, share.denominator + 1)
    return tuple(Subtask(f"milestone {part} of {share.denominator}", part <= share.numerator) for part in parts)


def _induced(episode: Episode, reference: Episode | None) -> Sequence[Entry]:
    own = lessons(episode, episode.revision)
    quoted = [lesson.entry for lesson in own]
    if reference is None:
        return _single(quoted, episode.success)
    if episode.success:
        start = pivot(episode, reference)
        return [lesson.entry for lesson in own if lesson.turn >= start] or quoted
    return _corrected(_single(quoted, success=False), _right(reference, episode))


def _single(quoted: Sequence[Entry], success: bool) -> Sequence[Entry]:
    """A success is a recipe; the last lesson of a failure is the likely error, and the others are discoveries."""
    return quoted if success else [*quoted[-1:], *quoted[:-1]]


def _right(success: Episode, failure: Episode) -> list[Entry]:
    """What a success did from where a failure parted from it, as far as it concerns the failure's task."""
    start, task = pivot(success, failure), failure.task
    known = {*words(task.scope), *words(task.instruction)}
    told = (lesson.entry for lesson in lessons(success, success.revision) if lesson.turn >= start)
    return [entry for entry in told if known.issuperset(entry.keywords.split())]


def _corrected(failed: Sequence[Entry], right: Sequence[Entry]) -> Sequence[Entry]:
    """The right choices, then what the failure taught about anything else."""
    settled = {entry.keywords for entry in right}
    return [*right, *(entry for entry in failed if entry.keywords not in settled)]
