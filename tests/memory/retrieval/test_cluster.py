"""Cluster-indexed retrieval: pools by utility, the fallback, and what links do."""

from support.entries import entry

from coevo.configs.bank.retrieval_config import ClusterRetrievalConfig, ClustersConfig
from coevo.memory.clusters import Clusters
from coevo.memory.retrieval.index import Index
from coevo.memory.stats import Stats

HALL, SAFE = "at hall hold nothing . seen nothing", "at safe hold mug . seen safe drawer"
GOOD = [entry(f"good {n}") for n in range(4)]
BAD = [entry(f"bad {n}", zone="warning") for n in range(3)]
STATS = {e.id: Stats(e.id, utility=n / 10) for n, e in enumerate([*GOOD, *BAD])}


def index(linked, config=None, entries=None):
    clusters = Clusters(ClustersConfig())
    clusters.link(clusters.assign(HALL), [e.id for e in linked])
    return Index(entries or [*GOOD, *BAD], config or ClusterRetrievalConfig(type="cluster"), STATS, clusters)


def found(hits):
    return [hit.entry.strategy for hit in hits]


def test_the_best_of_either_pool_by_utility():
    assert found(index([*GOOD, *BAD]).search(HALL, "")) == ["good 3", "good 2", "bad 2"]
    assert found(index([*GOOD[:1], *BAD[:2]]).search(HALL, "")) == ["good 0", "bad 1"]


def test_links_made_since_the_last_search_count():
    asked = index(GOOD[:1])
    assert found(asked.search(HALL, "")) == ["good 0"]
    for n, best in ((3, ["good 3", "good 0"]), (2, ["good 3", "good 2"])):
        asked.library.clusters.link(0, [GOOD[n].id])
        assert found(asked.search(HALL, "")) == found(asked.search(HALL, "")) == best
    asked.library.clusters.unlink([GOOD[3].id])
    assert found(asked.search(HALL, "")) == ["good 2", "good 0"]


def test_an_index_over_another_version_has_the_same_clusters_or_those_given():
    asked, other = index(GOOD), Clusters(ClustersConfig())
    assert found(asked.over(GOOD[:3], STATS).search(HALL, "")) == ["good 2", "good 1"]
    other.link(other.assign(HALL), [GOOD[0].id])
    assert found(asked.over(GOOD, STATS, other).search(HALL, "")) == ["good 0"]


def test_an_observation_like_the_prototype_has_its_pool():
    assert found(index(GOOD).search(HALL.replace("nothing", "mug", 1), "")) == ["good 3", "good 2"]


def test_without_a_pool_the_library_answers_with_what_is_like_the_observation():
    near, far = entry(SAFE + " too"), entry("mug in safe")
    asked = index(GOOD, entries=[*GOOD, near, far])
    assert found(asked.search(SAFE, "")) == [near.strategy]
    assert asked.tally["fallbacks"] == 1
    assert found(asked.search(HALL, "")) == ["good 3", "good 2"]
    assert asked.tally["fallbacks"] == 1


def test_the_fallback_wants_more_than_the_threshold():
    exact = entry(SAFE)
    for threshold, there in ((0.99, [SAFE]), (1.0, [])):
        config = ClusterRetrievalConfig(type="cluster", threshold=threshold)
        assert found(index([], config, [exact]).search(SAFE, "")) == there


def test_a_pool_of_another_scope_or_of_entries_that_are_gone_is_none():
    asked = index([entry("elsewhere", scope="maple"), entry("never seen")])
    assert found(asked.search(HALL, "lotus")) == []
    assert asked.tally["fallbacks"] == 1


def test_without_clusters_there_is_the_fallback():
    near = entry(SAFE)
    assert found(Index([near], ClusterRetrievalConfig(type="cluster")).search(SAFE, "")) == [SAFE]
