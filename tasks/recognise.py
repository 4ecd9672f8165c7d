"""Observation clusters of the episodes played, and the entries that belong to them (SLEA-RL section 3.2 and 3.4)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory.clusters import NONE, Clusters
from memory.text import clean
from records.entry import Entry
from records.episode import Episode, Turn
from tasks.retrieve import Experience, Retrieved


def recognise(clusters: Clusters, episodes: Sequence[Episode]) -> list[Episode]:
    """The episodes with every turn's cluster; clusters are made in the order of episodes and turns."""
    return [
        replace(
            episode, turns=tuple(replace(turn, cluster_id=clusters.assign(turn.observation)) for turn in episode.turns)
        )
        for episode in episodes
    ]


def link_answers(clusters: Clusters, episodes: Iterable[Episode], seen: Experience) -> None:
    """What an observation found in the whole library belongs to its cluster from now on (SLEA-RL Eq. 2)."""
    if not isinstance(seen, Retrieved):
        return
    for episode in episodes:
        for turn in episode.turns:
            hits = seen.answers["step"].get((seen.index.key(episode.task), turn.observation), [])
            clusters.link(turn.cluster_id, [hit.entry.id for hit in hits])


def associate(clusters: Clusters, entries: Iterable[Entry], episodes: Sequence[Episode]) -> None:
    """Link entries to the clusters of the steps that they were written from (SLEA-RL section 3.4).

    Those are the turns of their source episodes that took the example action; all turns where none did. Entries that
    are retired belong to no cluster any more.
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
