"""Reference episodes: for each key the latest successes and failures, for comparison with new attempts.

They are the accumulated successes T+(d) of JERP (Eq. 25) and the contrastive reference of RetroAgent's pairwise
induction. They belong to the revision: the input of a writer must not depend on whether the run was resumed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from coevo.records.episode import Episode
from coevo.records.task import KeyFunction


@dataclass(frozen=True, slots=True)
class ReferencePair:
    """Reference episodes of one key, oldest first."""

    successes: tuple[Episode, ...] = ()
    failures: tuple[Episode, ...] = ()


def reference_of(episode: Episode, pair: ReferencePair) -> Episode | None:
    """The latest reference with the other outcome: of the task itself, else of its kind, else any."""

    def nearness(index: int) -> tuple[bool, bool, int]:
        task = others[index].task
        return task.id == episode.task.id, task.kind == episode.task.kind, index

    others = pair.failures if episode.success else pair.successes
    return others[max(range(len(others)), key=nearness)] if others else None


class References:
    """At most ``keep`` successes and ``keep`` failures per key."""

    def __init__(self, key: KeyFunction, keep: int, episodes: Iterable[Episode] = ()) -> None:
        self._key = key
        self._keep = keep
        self._pairs: dict[str, ReferencePair] = {}
        self.add(episodes)

    def of(self, key: str) -> ReferencePair:
        """References of a key; empty for an unknown key."""
        return self._pairs.get(key, ReferencePair())

    def add(self, episodes: Iterable[Episode]) -> None:
        """Add episodes, oldest first; later ones replace the oldest."""
        for episode in episodes if self._keep else ():
            pair = self.of(key := self._key(episode.task))
            if episode.success:
                self._pairs[key] = ReferencePair((*pair.successes, episode)[-self._keep :], pair.failures)
            else:
                self._pairs[key] = ReferencePair(pair.successes, (*pair.failures, episode)[-self._keep :])

    def episodes(self) -> Iterator[Episode]:
        """All references; adding them to empty references in this order restores these."""
        for _, pair in sorted(self._pairs.items()):
            yield from (*pair.successes, *pair.failures)
