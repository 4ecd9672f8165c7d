"""Observation clusters (SLEA-RL section 3.2): groups of similar observations, and the entries linked to each.

Retrieval reads clusters and never creates one; they grow between iterations, in the order of the episodes. Therefore a
prompt does not depend on the other episodes in progress, and an evaluation changes nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coevo.configs.bank.retrieval_config import ClustersConfig
from coevo.memory.similarity import SimilarityIndex
from coevo.memory.text import clean
from coevo.records.entry import Entry
from coevo.records.episode import Episode, Turn

REMEMBERED = 16384
"""Most observations whose nearest cluster is cached."""

NONE = -1
"""Cluster of an observation that is similar to no prototype."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A group of similar observations.

    Attributes:
        id: number from 0, in order of creation.
        prototype: observation that created the cluster.
        entries: ids of the linked entries (E+ and E- together), in order of linking.
    """

    id: int
    prototype: str
    entries: tuple[str, ...] = ()


class Clusters:
    """The clusters of a run, with those that changed since the last commit.

    Attributes:
        linkings: grows with each change of links; cached links are valid while it does not change.
    """

    def __init__(self, config: ClustersConfig, clusters: Iterable[Cluster] = ()) -> None:
        self.linkings = 0
        self._config = config
        self._index = SimilarityIndex()
        self._prototypes: list[str] = []
        self._entries: list[dict[str, None]] = []
        self._changed: set[int] = set()
        self._found: dict[str, tuple[int, float, int]] = {}
        for cluster in clusters:
            self._append(cluster.prototype, cluster.entries)

    def __len__(self) -> int:
        return len(self._prototypes)

    def nearest(self, observation: str) -> int:
        """The cluster with the prototype most similar to the observation, the older of equals; ``NONE`` below delta."""
        found, similarity, asked = self._found.get(observation, (NONE, 0.0, 0))
        if asked == len(self):
            return found
        # Only clusters created since the last query can be nearer, and the older of equals stays.
        newer, better = self._index.nearest(observation, self._config.delta, since=asked)
        if better > similarity:
            found, similarity = newer, better
        if len(self._found) >= REMEMBERED:
            self._found.clear()
        self._found[observation] = found, similarity, len(self)
        return found

    def assign(self, observation: str) -> int:
        """The nearest cluster; without one, create it from the observation."""
        found = self.nearest(observation)
        if found != NONE:
            return found
        self._changed.add(len(self))
        return self._append(observation, ())

    def entries(self, cluster: int) -> tuple[str, ...]:
        """Ids of the entries linked to a cluster; empty for ``NONE``."""
        return () if cluster == NONE else tuple(self._entries[cluster])

    def link(self, cluster: int, entries: Iterable[str]) -> None:
        """Link entries to a cluster; linked entries keep their position."""
        before = len(self._entries[cluster])
        self._entries[cluster].update(dict.fromkeys(entries))
        if len(self._entries[cluster]) > before:
            self._changed.add(cluster)
            self.linkings += 1

    def all(self) -> tuple[Cluster, ...]:
        """All clusters, in order of creation."""
        return tuple(Cluster(at, text, self.entries(at)) for at, text in enumerate(self._prototypes))

    def copy(self) -> "Clusters":
        """Independent copy of the clusters, with no changes recorded."""
        return Clusters(self._config, self.all())

    def unlink(self, entries: Iterable[str]) -> None:
        """Remove all links of entries."""
        gone = set(entries)
        for cluster, linked in enumerate(self._entries if gone else ()):
            for entry in gone & linked.keys():
                del linked[entry]
                self._changed.add(cluster)
                self.linkings += 1

    def changed(self) -> tuple[Cluster, ...]:
        """Clusters created, linked or unlinked since the last ``forget_changes``."""
        return tuple(Cluster(at, self._prototypes[at], self.entries(at)) for at in sorted(self._changed))

    def forget_changes(self) -> None:
        """Mark all changes as committed."""
        self._changed.clear()

    def _append(self, prototype: str, entries: Iterable[str]) -> int:
        self._prototypes.append(prototype)
        self._entries.append(dict.fromkeys(entries))
        return self._index.add(prototype)


def associate(clusters: Clusters, entries: Iterable[Entry], episodes: Sequence[Episode]) -> None:
    """Link entries to the clusters of the turns that taught them (SLEA-RL section 3.4).

    These are the turns of their source episodes with the example action, or all turns if none has it. Retired entries
    are unlinked.
    """
    by_id = {episode.id: episode for episode in episodes}
    changed = list(entries)
    clusters.unlink(entry.id for entry in changed if not entry.active)
    for entry in changed:
        for source in entry.sources if entry.active else ():
            turns = by_id[source].turns if source in by_id else ()
            for turn in _steps(entry, turns):
                if turn.cluster_id != NONE:
                    clusters.link(turn.cluster_id, [entry.id])


def _steps(entry: Entry, turns: Sequence[Turn]) -> Sequence[Turn]:
    return [turn for turn in turns if clean(turn.action) == entry.example] or turns
