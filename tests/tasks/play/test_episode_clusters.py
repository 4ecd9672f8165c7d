"""Clusters of what was played, and which entries come to belong to them."""

from support.batches import episode, turn
from support.entries import entry

from coevo.configs.bank.retrieval_config import ClusterRetrievalConfig, ClustersConfig
from coevo.memory.clusters import Clusters
from coevo.memory.retrieval.index import Index
from coevo.records.draws import key
from coevo.tasks.play.retrieve import NOTHING, Retrieved, assign_clusters, link_answers

HALL, SAFE = "at hall hold nothing", "at safe hold mug . seen safe"


def played(*observations, action="go x", number=0):
    return episode(number, 0, tuple(turn(observation=text, action=action) for text in observations))


def test_turns_get_the_ids_in_the_order_of_play():
    clusters = Clusters(ClustersConfig())
    episodes = assign_clusters(clusters, [played(HALL, SAFE), played(SAFE, HALL, number=1)])
    assert [[t.cluster_id for t in e.turns] for e in episodes] == [[0, 1], [1, 0]]
    assert [t.observation for t in episodes[0].turns] == [HALL, SAFE]


def test_what_the_library_answered_belongs_to_the_cluster():
    clusters, near = Clusters(ClustersConfig()), entry(SAFE, scope="s")
    seen = Retrieved(Index([near], ClusterRetrievalConfig(type="cluster"), clusters=clusters), key(1))
    (episode,) = assign_clusters(clusters, [played(HALL, SAFE)])
    for each in episode.turns:
        seen.of_step(episode.task, each.observation)
    link_answers(clusters, [episode], seen)
    assert (clusters.entries(0), clusters.entries(1)) == ((), (near.id,))
    again = Retrieved(seen.index, key(1))
    assert again.of_step(episode.task, SAFE) == (near,)
    assert again.tally()["fallbacks"] == 0
    link_answers(clusters, [episode], NOTHING)
