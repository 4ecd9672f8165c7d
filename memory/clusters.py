"""Observation clusters (SLEA-RL section 3.2): which observations count as one, and which entries belong to them.

Retrieval reads clusters and never makes one; they grow between iterations, in the order of the episodes. So what a
prompt shows does not depend on who else was playing, and an evaluation changes nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from configs.retrieval import ClustersConfig
from memory.likeness import Likeness

REMEMBERED = 16384
"""Most observations whose nearest cluster is remembered."""

NONE = -1
"""The cluster of an observation that belongs to none."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Observations that count as one.

    Attributes:
        id: clusters are numbered from 0 in the order in which they were made.
        prototype: the observation that it was made of.
        entries: ids of the entries that belong to it (E+ and E- together), in the order in which they were linked.
    """

    id: int
    prototype: str
    entries: tuple[str, ...] = ()


class Clusters:
    """The clusters of a run; those that have changed since the last commit are known.

    Attributes:
        linkings: how often entries were linked or unlinked; what was read of them before holds while it stays.
    """

    def __init__(self, config: ClustersConfig, clusters: Iterable[Cluster] = ()) -> None:
        self.linkings = 0
        self._config = config
        self._likeness = Likeness()
        self._prototypes: list[str] = []
        self._entries: list[dict[str, None]] = []
        self._changed: set[int] = set()
        self._found: dict[str, tuple[int, float, int]] = {}
        for cluster in clusters:
            self._append(cluster.prototype, cluster.entries)

    def __len__(self) -> int:
        return len(self._prototypes)

    def nearest(self, observation: str) -> int:
        """The cluster whose prototype is most like the observation, the older of equals; ``NONE`` below delta."""
        found, likeness, asked = self._found.get(observation, (NONE, 0.0, 0))
        if asked == len(self):
            return found
        # Only clusters made since the last question can be nearer, and the older of equals stays.
        newer, better = self._likeness.nearest(observation, self._config.delta, since=asked)
        if better > likeness:
            found, likeness = newer, better
        if len(self._found) >= REMEMBERED:
            self._found.clear()
        self._found[observation] = found, likeness, len(self)
        return found

    def assign(self, observation: str) -> int:
        """The nearest cluster, made of the observation where there is none."""
        found = self.nearest(observation)
        if found != NONE:
            return found
        self._changed.add(len(self))
        return self._append(observation, ())

    def entries(self, cluster: int) -> tuple[str, ...]:
        """Ids of the entries that belong to a cluster; nothing belongs to ``NONE``."""
        return () if cluster == NONE else tuple(self._entries[cluster])

    def link(self, cluster: int, entries: Iterable[str]) -> None:
        """Make entries belong to a cluster; those that do already stay where they are."""
        before = len(self._entries[cluster])
        self._entries[cluster].update(dict.fromkeys(entries))
        if len(self._entries[cluster]) > before:
            self._changed.add(cluster)
            self.linkings += 1

    def all(self) -> tuple[Cluster, ...]:
        """Every cluster, in the order in which they were made."""
        return tuple(Cluster(at, text, self.entries(at)) for at, text in enumerate(self._prototypes))

    def copy(self) -> "Clusters":
        """The same clusters, none of them changed yet; what becomes of either side does not reach the other."""
        return Clusters(self._config, self.all())

    def unlink(self, entries: Iterable[str]) -> None:
        """Make entries belong to no cluster any more."""
        gone = set(entries)
        for cluster, linked in enumerate(self._entries if gone else ()):
            for entry in gone & linked.keys():
                del linked[entry]
                self._changed.add(cluster)
                self.linkings += 1

    def changed(self) -> tuple[Cluster, ...]:
        """Clusters made, linked or unlinked since the last ``forget_changes``."""
        return tuple(Cluster(at, self._prototypes[at], self.entries(at)) for at in sorted(self._changed))

    def forget_changes(self) -> None:
        """What has changed is kept elsewhere by now."""
        self._changed.clear()

    def _append(self, prototype: str, entries: Iterable[str]) -> int:
        self._prototypes.append(prototype)
        self._entries.append(dict.fromkeys(entries))
        return self._likeness.add(prototype)
