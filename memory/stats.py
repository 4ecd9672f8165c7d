"""Counters of entries: retrievals, successes, utility and visits, and the distribution of retrievals."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from coevo.records.episode import Episode

if TYPE_CHECKING:  # settings of all parts of a bank, which a reader need not load
    from coevo.configs.bank.bank_config import UtilityUpdateConfig

FROM = (0, 1, *(2**power for power in range(1, 11)))
"""Least retrievals of each bin of a histogram; a bin ends where the next one begins."""


@dataclass(frozen=True, slots=True)
class Stats:
    """Counters of one entry, separate from its text since they change at every iteration.

    Attributes:
        id: id of the entry.
        retrievals: training episodes with the entry in a prompt.
        successes: successful episodes among these.
        utility: running estimate of its worth, initially 0.5.
        visits: visits behind the estimate, initially 1.
    """

    id: str
    retrievals: int = 0
    successes: int = 0
    utility: float = 0.5
    visits: int = 1

    @property
    def usefulness(self) -> float:
        """Expected success rate of episodes that see the entry (rule of succession): 1/2 before any has."""
        return (self.successes + 1) / (self.retrievals + 2)


@dataclass(frozen=True, slots=True)
class RetrievalCounts:
    """Distribution of retrievals over entries (RetroAgent Fig. 7, which counts from 1 where this counts from 0).

    Attributes:
        least: retrievals of the entry retrieved least.
        median: median of the entries.
        most: retrievals of the entry retrieved most.
        histogram: number of entries by bin, in the order of ``FROM``.
    """

    least: int
    median: float
    most: int
    histogram: tuple[int, ...]

    @property
    def entries(self) -> int:
        """Number of entries."""
        return sum(self.histogram)

    @property
    def never(self) -> int:
        """Number of entries that were never retrieved."""
        return self.histogram[0]


def retrieval_counts(entries: Iterable[str], stats: Mapping[str, Stats]) -> RetrievalCounts | None:
    """Distribution of the retrievals of entries, by id; None without an entry. An entry without counters has 0."""
    counts = np.array([stats[entry].retrievals if entry in stats else 0 for entry in entries], np.int64)
    if not len(counts):
        return None
    bins = np.bincount(np.searchsorted(FROM, counts, side="right") - 1, minlength=len(FROM))
    return RetrievalCounts(int(counts.min()), float(np.median(counts)), int(counts.max()), tuple(bins.tolist()))


def retrieved(episodes: Iterable[Episode]) -> set[str]:
    """Ids of the entries in prompts of these episodes."""
    return {entry for episode in episodes for turn in episode.turns for entry in turn.retrieved}


def tally(
    stats: Mapping[str, Stats], episodes: Iterable[Episode], update: "UtilityUpdateConfig | None" = None
) -> tuple[Stats, ...]:
    """Counters that ``episodes`` change, with their new values, ordered by id.

    An episode counts once for an entry, however many of its prompts contain the entry. With ``update`` the utility
    follows the episodes' scores, in their order (RetroAgent Eq. 8).
    """
    changed: dict[str, Stats] = {}
    for episode in episodes:
        for entry in retrieved([episode]):
            old = changed.get(entry) or stats.get(entry) or Stats(entry)
            counted = replace(old, retrievals=old.retrievals + 1, successes=old.successes + int(episode.success))
            changed[entry] = counted if update is None else _credited(counted, episode, update)
    return tuple(changed[entry] for entry in sorted(changed))


def initial_stats(
    entries: Iterable[str],
    utility: Mapping[str, float],
    stats: Mapping[str, Stats],
    update: "UtilityUpdateConfig | None",
) -> list[Stats]:
    """Counters of entries that enter or get a new utility; entries without either have none.

    Args:
        entries: ids of new and changed entries.
        utility: new utilities by id.
        stats: current counters.
        update: its ``initial`` is the utility of new entries that are not in ``utility``.
    """
    given = dict.fromkeys(entries, update.initial) if update else {}
    given = {entry: worth for entry, worth in given.items() if entry not in stats} | dict(utility)
    return [replace(stats.get(entry, Stats(entry)), utility=given[entry]) for entry in sorted(given)]


def _credited(stats: Stats, episode: Episode, update: "UtilityUpdateConfig") -> Stats:
    score = episode.reward if update.score == "reward" else 2.0 * episode.success - 1.0
    utility = (1 - update.rate) * stats.utility + update.rate * score
    return replace(stats, utility=utility, visits=stats.visits + 1)
