"""Extremes of rewards (SLEA-RL section 3.4): the episodes that earned most and least, and the level of a lesson."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from statistics import median

from coevo.records.entry import LEVELS
from coevo.records.episode import Episode
from coevo.records.task import Task

Rank = Callable[[Episode], tuple[float, bool]]
"""Sort key of episodes, lowest first."""


def partition(episodes: Sequence[Episode]) -> tuple[list[Episode], list[Episode]]:
    """T+ and T-: episodes with a reward above the median, and the others.

    If the median is also the highest reward, T+ has the episodes with that reward. If all rewards are equal, T+ has
    the successes.
    """
    rewards = [episode.reward for episode in episodes]
    if len(set(rewards)) < 2:
        upper = [episode.success for episode in episodes]
    else:
        middle, most = median(rewards), max(rewards)
        upper = [reward > middle or reward == most for reward in rewards]
    sides = list(zip(episodes, upper, strict=True))
    return [episode for episode, above in sides if above], [episode for episode, above in sides if not above]


def foremost(episodes: Sequence[Episode], rank: Rank) -> list[Episode]:
    """Sort by rank; among equals, every task has its first episode before any has its second."""
    seen: Counter[Hashable] = Counter()
    places: list[tuple[tuple[float, bool], int]] = []
    for episode in episodes:
        ranked = rank(episode)
        places.append((ranked, seen[episode.task.id, ranked]))
        seen[episode.task.id, ranked] += 1
    return [episodes[at] for at in sorted(range(len(episodes)), key=places.__getitem__)]


def best(episode: Episode) -> tuple[float, bool]:
    """Rank of an episode: the highest reward first."""
    return -episode.reward, not episode.success


def worst(episode: Episode) -> tuple[float, bool]:
    """Rank of an episode: the lowest reward first.

    Among equals, failures that the environment ended come first: they identify a mistake.
    """
    return episode.reward, not was_ended(episode)


def was_ended(episode: Episode) -> bool:
    """Report whether its last action made it fail."""
    return not episode.success and not episode.truncated


def level(tasks: Sequence[Task]) -> str:
    """Level of a lesson that occurred in these tasks.

    A principle occurs in several kinds of tasks, a pattern in several tasks of one kind, an example in a single task.
    """
    principle, pattern, example = LEVELS
    if len({task.kind for task in tasks}) > 1:
        return principle
    return pattern if len({task.id for task in tasks}) > 1 else example
