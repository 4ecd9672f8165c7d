"""The built-in reflector: a rule that reflects on an episode from its text, its outcome and its progress.

It knows the outcome, as in RetroAgent's in-context variant. Its lessons quote feedback
(``coevo.memory.evidence.episode_lessons``).
"""

from collections.abc import Sequence
from fractions import Fraction

from coevo.memory.evidence.contrasts import pivot
from coevo.memory.evidence.episode_lessons import lessons
from coevo.memory.evidence.reflections import Reflection, Subtask, write
from coevo.memory.text import words
from coevo.records.entry import Entry
from coevo.records.episode import Episode

FINEST = 100
"""Most subtasks into which progress is divided."""


def reflect(episode: Episode, reference: Episode | None, most: int) -> str:
    """Write a reflection in the form of ``coevo.memory.evidence.reflections``.

    Args:
        episode: episode to reflect on.
        reference: episode with the other outcome for comparison (pairwise induction); None for single induction.
        most: most lessons.
    """
    quotes = dict.fromkeys(lesson.strategy for lesson in _induced(episode, reference))
    return write(Reflection(_subtasks(episode), episode.success, tuple(quotes)[:most]))


def _subtasks(episode: Episode) -> tuple[Subtask, ...]:
    """Subtasks that express the environment's progress; without progress, the task is the only subtask."""
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
    """Lessons in order of value: as they came for a success; last first, as the likely error, for a failure."""
    return quoted if success else [*quoted[-1:], *quoted[:-1]]


def _right(success: Episode, failure: Episode) -> list[Entry]:
    """Lessons of a success from where a failure diverged from it, as far as they concern the failure's task."""
    start, task = pivot(success, failure), failure.task
    known = {*words(task.scope), *words(task.instruction)}
    told = (lesson.entry for lesson in lessons(success, success.revision) if lesson.turn >= start)
    return [entry for entry in told if known.issuperset(entry.keywords.split())]


def _corrected(failed: Sequence[Entry], right: Sequence[Entry]) -> Sequence[Entry]:
    """The right choices, then the failure's lessons about anything else."""
    settled = {entry.keywords for entry in right}
    return [*right, *(entry for entry in failed if entry.keywords not in settled)]
