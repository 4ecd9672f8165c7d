"""Where episodes of one task teach most (CoEvo-RL section 3.4): contrastive pairs, success and failure clusters."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from memory.lessons import lessons
from records.entry import Entry
from records.episode import Episode

Episodes = Sequence[Episode]


@dataclass(frozen=True, slots=True)
class Exhibit:
    """Episodes looked at together, and the lessons drawn from them, best first."""

    episodes: tuple[Episode, ...]
    lessons: tuple[Entry, ...]


def exhibits(episodes: Iterable[Episode], revision: int) -> Iterator[Exhibit]:
    """Contrastive pairs of all tasks, then successes of tasks without a failure, then failures without a success.

    Within a kind, every task has its first exhibit before any has its second. An exhibit is made when it is asked for.
    """
    groups = list(_by_task(episodes))
    for contrast in (_pairs, _recipes, _errors):
        rounds = zip_longest(*(contrast(successes, failures, revision) for successes, failures in groups))
        yield from (exhibit for exhibit in chain.from_iterable(rounds) if exhibit is not None)


def pivot(success: Episode, failure: Episode) -> int:
    """The first turn at which two attempts at a task part: the pivotal decision, if nothing but it differs before.

    The length of the shorter where one repeats the other to its end.
    """
    both = zip(success.turns, failure.turns, strict=False)
    apart = (i for i, (a, b) in enumerate(both) if (a.observation, a.action) != (b.observation, b.action))
    return next(apart, min(len(success.turns), len(failure.turns)))


def _by_task(episodes: Iterable[Episode]) -> Iterator[tuple[Episodes, Episodes]]:
    """(successes, failures) of each task, tasks in order of first appearance."""
    groups: dict[str, list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(episode.task.id, []).append(episode)
    for group in groups.values():
        yield [each for each in group if each.success], [each for each in group if not each.success]


def _pairs(successes: Episodes, failures: Episodes, revision: int) -> Iterator[Exhibit]:
    """Each failure beside the success that went with it longest: what that did right from there.

    Only where the success teaches nothing there, the error is the lesson: a warning beside the right choice would
    take room in the prompt and tell nothing more.
    """
    for failure in failures if successes else ():
        parted = [pivot(success, failure) for success in successes]
        start = max(parted)
        success = successes[parted.index(start)]
        right = [lesson.entry for lesson in lessons(success, revision) if lesson.turn >= start]
        wrong = [lesson.entry for lesson in lessons(failure, revision)[-1:]]
        yield Exhibit((success, failure), tuple(right or wrong))


def _recipes(successes: Episodes, failures: Episodes, revision: int) -> Iterator[Exhibit]:
    for success in successes if not failures else ():
        yield Exhibit((success,), tuple(lesson.entry for lesson in lessons(success, revision)))


def _errors(successes: Episodes, failures: Episodes, revision: int) -> Iterator[Exhibit]:
    """The last lesson is the likely cause; the others are discoveries made on the way."""
    for failure in failures if not successes else ():
        found = [lesson.entry for lesson in lessons(failure, revision)]
        yield Exhibit((failure,), (*found[-1:], *found[:-1]))
