"""Observation clusters of played episodes, and the entries linked to them (SLEA-RL section 3.2 and 3.4)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from coevo.memory.clusters import Clusters
from coevo.records.episode import Episode
from coevo.tasks.play.retrieve import Experience, Retrieved


def assign_clusters(clusters: Clusters, episodes: Sequence[Episode]) -> list[Episode]:
    """Assign every turn to a cluster; new clusters are created in the order of episodes and turns."""
    return [
        replace(
            episode, turns=tuple(replace(turn, cluster_id=clusters.assign(turn.observation)) for turn in episode.turns)
        )
        for episode in episodes
    ]


def link_answers(clusters: Clusters, episodes: Iterable[Episode], seen: Experience) -> None:
    """Link the entries that an observation found in the whole library to its cluster (SLEA-RL Eq. 2)."""
    if not isinstance(seen, Retrieved):
        return
    for episode in episodes:
        for turn in episode.turns:
            hits = seen.answers["step"].get((seen.index.key(episode.task), turn.observation), [])
            clusters.link(turn.cluster_id, [hit.entry.id for hit in hits])
