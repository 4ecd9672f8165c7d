"""Contrasts between episodes of one task (CoEvo-RL section 3.4): contrastive pairs, success and failure clusters."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from coevo.memory.evidence.feedback_lessons import lessons
from coevo.records.entry import Entry
from coevo.records.episode import Episode


@dataclass(frozen=True, slots=True)
class Contrast:
    """Episodes that are compared, and the lessons drawn from them, best first."""

    episodes: tuple[Episode, ...]
    lessons: tuple[Entry, ...]


def contrasts(episodes: Iterable[Episode], revision: int) -> Iterator[Contrast]:
    """Contrastive pairs of all tasks, then successes of tasks without a failure, then failures without a success.

    Within a kind, every task has its first contrast before any has its second. Contrasts are computed lazily.
    """
    groups = list(_by_task(episodes))
    for kind in (_pairs, _recipes, _errors):
        rounds = zip_longest(*(kind(successes, failures, revision) for successes, failures in groups))
        yield from (contrast for contrast in chain.from_iterable(rounds) if contrast is not None)


def clusters(episodes: Iterable[Episode]) -> Iterator[Sequence[Episode]]:
    """Episodes to compare, in the order of ``contrasts``; tasks without a pair have one cluster of all their episodes.

    A pair is a success and a failure.
    """
    groups = list(_by_task(episodes))
    rounds = zip_longest(*(_nearest(*group) for group in groups))
    yield from ((success, failure) for success, failure, _ in filter(None, chain.from_iterable(rounds)))
    for alone, others in ((0, 1), (1, 0)):
        yield from (group[alone] for group in groups if group[alone] and not group[others])


def pivot(success: Episode, failure: Episode) -> int:
    """Index of the first turn at which two attempts at a task differ: the pivotal decision, if all before is equal.

    The length of the shorter attempt if the other begins with it.
    """
    both = zip(success.turns, failure.turns, strict=False)
    apart = (i for i, (a, b) in enumerate(both) if (a.observation, a.action) != (b.observation, b.action))
    return next(apart, min(len(success.turns), len(failure.turns)))


def _by_task(episodes: Iterable[Episode]) -> Iterator[tuple[Sequence[Episode], Sequence[Episode]]]:
    """(successes, failures) of each task, tasks in order of first appearance."""
    groups: dict[str, list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(episode.task.id, []).append(episode)
    for group in groups.values():
        yield [each for each in group if each.success], [each for each in group if not each.success]


def _pairs(successes: Sequence[Episode], failures: Sequence[Episode], revision: int) -> Iterator[Contrast]:
    """Each failure with the success that agrees with it longest; the lessons are those of the success from there on.

    Only if the success has none there, the lesson is the error: a warning next to the right choice takes room in the
    prompt and adds no information.
    """
    for success, failure, start in _nearest(successes, failures):
        right = [lesson.entry for lesson in lessons(success, revision) if lesson.turn >= start]
        wrong = [lesson.entry for lesson in lessons(failure, revision)[-1:]]
        yield Contrast((success, failure), tuple(right or wrong))


def _nearest(successes: Sequence[Episode], failures: Sequence[Episode]) -> Iterator[tuple[Episode, Episode, int]]:
    """Each failure behind the success that agrees with it longest, and the turn at which they differ."""
    for failure in failures if successes else ():
        parted = [pivot(success, failure) for success in successes]
        yield successes[parted.index(max(parted))], failure, max(parted)


def _recipes(successes: Sequence[Episode], failures: Sequence[Episode], revision: int) -> Iterator[Contrast]:
    for success in successes if not failures else ():
        yield Contrast((success,), tuple(lesson.entry for lesson in lessons(success, revision)))


def _errors(successes: Sequence[Episode], failures: Sequence[Episode], revision: int) -> Iterator[Contrast]:
    """The last lesson is the likely cause; the others are discoveries before it."""
    for failure in failures if not successes else ():
        found = [lesson.entry for lesson in lessons(failure, revision)]
        yield Contrast((failure,), (*found[-1:], *found[:-1]))
