"""Hot counters of entries: how often each was retrieved, and how the episodes that saw it ended."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from records.episode import Episode


@dataclass(frozen=True, slots=True)
class Stats:
    """Counters of one entry, kept apart from its text since they change at every iteration.

    Attributes:
        id: the entry's.
        retrievals: training episodes with the entry in a prompt.
        successes: those of them that succeeded.
        utility: running estimate of its worth, 0.5 at birth.
        visits: visits that the utility was estimated from, 1 at birth.
    """

    id: str
    retrievals: int = 0
    successes: int = 0
    utility: float = 0.5
    visits: int = 1


def retrieved(episodes: Iterable[Episode]) -> set[str]:
    """Ids of the entries that stood in a prompt of these episodes."""
    return {entry for episode in episodes for turn in episode.turns for entry in turn.retrieved}


def tally(stats: Mapping[str, Stats], episodes: Iterable[Episode]) -> tuple[Stats, ...]:
    """The counters that ``episodes`` change, as they are afterwards, ordered by id.

    An episode counts once for an entry, in however many of its prompts the entry stood.
    """
    changed: dict[str, Stats] = {}
    for episode in episodes:
        for entry in retrieved([episode]):
            old = changed.get(entry) or stats.get(entry) or Stats(entry)
            changed[entry] = replace(old, retrievals=old.retrievals + 1, successes=old.successes + int(episode.success))
    return tuple(changed[entry] for entry in sorted(changed))
