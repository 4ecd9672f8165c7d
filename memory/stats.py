"""Hot counters of entries: how often each was retrieved, and how the episodes that saw it ended."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from configs.bank import UtilityUpdateConfig
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


def tally(
    stats: Mapping[str, Stats], episodes: Iterable[Episode], update: UtilityUpdateConfig | None = None
) -> tuple[Stats, ...]:
    """The counters that ``episodes`` change, as they are afterwards, ordered by id.

    An episode counts once for an entry, in however many of its prompts the entry stood. With ``update`` the utility
    follows the episodes' scores, in their order (RetroAgent Eq. 8).
    """
    changed: dict[str, Stats] = {}
    for episode in episodes:
        for entry in retrieved([episode]):
            old = changed.get(entry) or stats.get(entry) or Stats(entry)
            counted = replace(old, retrievals=old.retrievals + 1, successes=old.successes + int(episode.success))
            changed[entry] = counted if update is None else _credited(counted, episode, update)
    return tuple(changed[entry] for entry in sorted(changed))


def born(
    entries: Iterable[str], utility: Mapping[str, float], stats: Mapping[str, Stats], update: UtilityUpdateConfig | None
) -> list[Stats]:
    """Counters of entries that enter or are given a utility; those that nothing is known of have none.

    Args:
        entries: ids of those that enter or change.
        utility: by id, what they are worth from now on.
        stats: counters that there are.
        update: its ``initial`` is what new entries are worth that are not in ``utility``.
    """
    given = dict.fromkeys(entries, update.initial) if update else {}
    given = {entry: worth for entry, worth in given.items() if entry not in stats} | dict(utility)
    return [replace(stats.get(entry, Stats(entry)), utility=given[entry]) for entry in sorted(given)]


def _credited(stats: Stats, episode: Episode, update: UtilityUpdateConfig) -> Stats:
    score = episode.reward if update.score == "reward" else 2.0 * episode.success - 1.0
    utility = (1 - update.rate) * stats.utility + update.rate * score
    return replace(stats, utility=utility, visits=stats.visits + 1)
