"""Lessons in the feedback of episodes, and contrasts between those of one task (CoEvo-RL section 3.4).

A lesson is feedback with information about the task that the next observation does not show. Contrasts are contrastive
pairs, and clusters of successes and failures.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from coevo.memory.text import clean, content_words, words
from coevo.records.entry import Entry, entry_id
from coevo.records.episode import Episode


@dataclass(frozen=True, slots=True)
class TurnLesson:
    """The lesson of one turn.

    Attributes:
        turn: index of the turn in its episode.
        entry: the lesson as an entry with that episode as its only source.
    """

    turn: int
    entry: Entry


def lessons(episode: Episode, revision: int) -> list[TurnLesson]:
    """The lessons of an episode in order of turns, as entries of ``revision``.

    Feedback is a lesson if it mentions a word of the action and a content word of the instruction, and has a word that
    the next observation lacks: ``hold mug`` before ``at safe hold mug`` only acknowledges. No observation follows the
    last turn, so its feedback is compared with the words of the action and of all observations.
    """
    found = []
    for index, turn in enumerate(episode.turns):
        feedback = words(turn.feedback)
        concerns = [word for word in content_words(episode.task.instruction) if word in feedback]
        if concerns and set(feedback) & set(words(turn.action)) and set(feedback) - _said_after(episode, index):
            found.append(TurnLesson(index, _entry(episode, index, concerns, revision)))
    return found


def _said_after(episode: Episode, index: int) -> set[str]:
    if index + 1 < len(episode.turns):
        return set(words(episode.turns[index + 1].observation))
    seen = " ".join(turn.observation for turn in episode.turns)
    return set(words(f"{seen} {episode.turns[index].action}"))


def _entry(episode: Episode, index: int, concerns: list[str], revision: int) -> Entry:
    task, turn = episode.task, episode.turns[index]
    named = words(task.scope)
    strategy = clean(f"{task.scope} {turn.feedback}")
    return Entry(
        id=entry_id(task.scope, strategy),
        strategy=strategy,
        condition=clean(" ".join(concerns)),
        example=clean(turn.action),
        keywords=clean(" ".join([*named, *(word for word in concerns if word not in named)])),
        scope=task.scope,
        split=task.split,
        sources=(episode.id,),
        created=revision,
        edited=revision,
    )


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
