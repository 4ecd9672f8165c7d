"""Part of the lessons in a failed episode: not in the bank, not found, left out of the prompts, or not followed.

A lesson fits if its text holds every word of a note that the task needs, as the environment words it
(``Environment.needed``). A lesson that says the same in other words cannot be told from one that does not.
"""

import re
from collections.abc import Iterable, Sequence

from coevo.memory.retrieval.index import Index
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.failure_reasons import FailureReason, LessonUse, failure_reason
from coevo.tasks.play.retrieve import Experience

_WORD = re.compile(r"\w+")


def lesson_use(
    episode: Episode, needed: Sequence[str] | None, index: Index | None, seen: Experience, reworded: bool
) -> LessonUse:
    """Part of the lessons in a failed episode.

    Args:
        episode: the failed episode.
        needed: notes that its task needs; None if the environment cannot tell.
        index: index that was searched; None if the policy had no bank.
        seen: retrieval of the episode, whose answers are repeated.
        reworded: True if a model writes the lessons, in words of its own.
    """
    if failure_reason(episode) is FailureReason.ENVIRONMENT:
        return LessonUse.UNKNOWN
    entries = [] if index is None else index.library.entries
    if not entries:
        return LessonUse.NONE_FITS
    if not needed:
        return LessonUse.UNKNOWN
    assert index is not None
    pool = [each for each in entries if not index.config.scoped or each.scope in ("", index.key(episode.task))]
    if not _hold(pool, needed):
        return LessonUse.UNKNOWN if reworded and pool else LessonUse.NONE_FITS
    found = [*seen.of_task(episode.task)]
    found += [entry for turn in episode.turns for entry in seen.of_step(episode.task, turn.observation)]
    if not _hold(found, needed):
        return LessonUse.NOT_RETRIEVED
    read = {identifier for turn in episode.turns for identifier in turn.retrieved}
    shown = [entry for entry in found if entry.id in read]
    return LessonUse.NOT_FOLLOWED if _hold(shown, needed) else LessonUse.LEFT_OUT


def _hold(entries: Iterable[Entry], needed: Sequence[str]) -> bool:
    """True if each needed note is in an entry."""
    texts = [_words(entry.strategy) for entry in entries]
    return all(any(_words(note) <= text for text in texts) for note in needed)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
