"""Part that lessons have in a failure, where the environment says what its tasks need."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from coevo.memory.retrieval.index import Index
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.failure_reasons import FailureReason, LessonUse, failure_reason
from coevo.records.task import About, Task
from coevo.tasks.play.retrieve import Entries, Experience, Retrieved, step_query

_WORD = re.compile(r"\w+")


class FoundBefore:
    """Entries that a retrieval has found for queries of before; it searches nothing, and counts nothing."""

    def __init__(self, seen: Retrieved) -> None:
        self._seen = seen

    def of_task(self, task: About) -> Entries:
        """Entries found for the instruction."""
        return self._found("task", task, task.instruction)

    def of_step(self, task: About, observation: str) -> Entries:
        """Entries found for the observation."""
        return self._found("step", task, step_query(task, observation, self._seen.index.config))

    def _found(self, what: str, task: About, text: str) -> Entries:
        hits = self._seen.answers[what].get((self._seen.index.key(task), text), ())
        return tuple(hit.entry for hit in hits)


def with_lesson_use(
    episodes: Sequence[Episode],
    seen: Experience,
    needed: Callable[[Task], Sequence[str] | None],
    reworded: bool,
    has_lessons: bool,
) -> list[Episode]:
    """Training episodes, each failed one with the part that lessons have in it.

    It is unknown where the bank has lessons that are not shown.

    Args:
        episodes: of a batch.
        seen: retrieval of the batch; anything else stands for no bank.
        needed: notes that a task needs; None where the environment cannot tell.
        reworded: True if a model writes the lessons, in words of its own.
        has_lessons: True if the bank has any.
    """
    index, answers = (seen.index, FoundBefore(seen)) if isinstance(seen, Retrieved) else (None, seen)

    def told(episode: Episode) -> Episode:
        if failure_reason(episode) is None:
            return episode
        if index is None and has_lessons:
            return replace(episode, lesson_use=LessonUse.UNKNOWN)
        use = lesson_use(episode, needed(episode.task), index, answers, reworded)
        return replace(episode, lesson_use=use)

    return list(map(told, episodes))


def lesson_use(
    episode: Episode, needed: Sequence[str] | None, index: Index | None, seen: Experience, reworded: bool
) -> LessonUse:
    """Part of the lessons in a failed episode; unknown if it read one that is not in the bank, as on trial.

    Args:
        episode: the failed episode.
        needed: notes that its task needs; None if the environment cannot tell.
        index: index that was searched; None if the policy had no bank.
        seen: retrieval of the episode, whose answers are repeated.
        reworded: True if a model writes the lessons, in words of its own.
    """
    read = {name for turn in episode.turns for name in turn.retrieved}
    lost = failure_reason(episode) is FailureReason.ENVIRONMENT
    if not (lost or read) and (index is None or not len(index.library)):
        return LessonUse.NO_BANK
    if lost or index is None or not needed:
        return LessonUse.UNKNOWN
    pool = index.library.some(index.library.rows(index.key(episode.task) if index.config.scoped else None))
    if not read <= {each.id for each in pool}:
        return LessonUse.UNKNOWN
    if not _hold(pool, needed):
        return LessonUse.UNKNOWN if reworded and pool else LessonUse.NONE_FITS
    found = [*seen.of_task(episode.task)]
    found += [entry for turn in episode.turns for entry in seen.of_step(episode.task, turn.observation)]
    if not _hold(found, needed):
        return LessonUse.NOT_RETRIEVED
    shown = [entry for entry in found if entry.id in read]
    return LessonUse.NOT_FOLLOWED if _hold(shown, needed) else LessonUse.LEFT_OUT


def _hold(entries: Iterable[Entry], needed: Sequence[str]) -> bool:
    """True if each needed note is in an entry."""
    texts = [_words(entry.strategy) for entry in entries]
    return all(any(_words(note) <= text for text in texts) for note in needed)


@lru_cache(maxsize=1 << 16)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
