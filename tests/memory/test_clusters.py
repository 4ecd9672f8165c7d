"""Clusters: the nearest, not the first; and nothing but assignment makes one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.batches import entry, episode, turn

import coevo.memory.clusters
from coevo.configs.bank.retrieval_config import ClustersConfig
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.clusters import NONE, Cluster, Clusters, associate

CONFIG = ClustersConfig()
BASE = "at hall hold nothing . seen safe drawer chest . fork plate"
NEAR = BASE.replace("fork", "mug").replace("plate", "pan")
BETWEEN = BASE.replace("fork", "mug")


def test_the_nearest_prototype_and_the_older_of_equals():
    clusters = Clusters(ClustersConfig(delta=0.8), [Cluster(0, BASE), Cluster(1, "x y z"), Cluster(2, BETWEEN)])
    assert clusters.nearest(NEAR) == 2
    assert clusters.nearest(BASE) == 0
    assert Clusters(ClustersConfig(delta=0.8), [Cluster(0, BASE), Cluster(1, NEAR)]).nearest(BETWEEN) == 0


def test_a_later_cluster_is_the_nearest_only_if_it_is_nearer():
    clusters = Clusters(ClustersConfig(delta=0.85), [Cluster(0, BASE)])
    assert (clusters.nearest(BETWEEN), clusters.nearest("x y z")) == (0, NONE)
    # Ten of twelve tokens: 0.83. ``BETWEEN`` has eleven of twelve in common with either.
    assert [clusters.assign(text) for text in (NEAR, "x y z")] == [1, 2]
    assert [clusters.nearest(text) for text in (BETWEEN, NEAR, "x y z", "u")] == [0, 1, 2, NONE]


def test_looking_makes_no_cluster_and_assignment_does():
    clusters = Clusters(CONFIG)
    assert (clusters.nearest(BASE), len(clusters), clusters.changed()) == (NONE, 0, ())
    assert [clusters.assign(text) for text in (BASE, "x y z", BASE, BETWEEN)] == [0, 1, 0, 0]
    assert clusters.nearest(BASE) == 0
    assert clusters.changed() == (Cluster(0, BASE), Cluster(1, "x y z"))


@pytest.mark.parametrize("most", [2, 16384])
@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=6).map(" ".join), max_size=12))
def test_what_is_remembered_of_an_observation_keeps_up_with_new_clusters(most, observations):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coevo.memory.clusters, "REMEMBERED", most)
        clusters = Clusters(ClustersConfig(delta=0.6))
        for n, text in enumerate(observations):
            clusters.assign(text)
            fresh = Clusters(ClustersConfig(delta=0.6), clusters.changed())
            assert [clusters.nearest(each) for each in observations[: n + 2]] == [
                fresh.nearest(each) for each in observations[: n + 2]
            ]


def test_delta_one_matches_equal_tokens_only():
    clusters = Clusters(ClustersConfig(delta=1.0))
    assert [clusters.assign(text) for text in (BASE, BETWEEN, BASE + "  ")] == [0, 1, 0]


def test_links_are_kept_once_in_order_and_told_once():
    clusters = Clusters(CONFIG, [Cluster(0, BASE, ("a",))])
    clusters.link(0, ["a"])
    assert clusters.changed() == ()
    clusters.link(0, ["c", "b", "c"])
    assert clusters.changed() == (Cluster(0, BASE, ("a", "c", "b")),)
    clusters.forget_changes()
    assert clusters.changed() == ()
    assert (clusters.entries(0), clusters.entries(NONE)) == (("a", "c", "b"), ())


def test_linkings_grow_with_every_change_of_links_and_with_nothing_else():
    clusters = Clusters(CONFIG, [Cluster(0, BASE, ("a",))])
    before = clusters.linkings
    clusters.link(0, ["a"])
    clusters.unlink(["none"])
    clusters.assign("x y z")
    assert clusters.linkings == before
    seen = [before]
    for change in (lambda: clusters.link(0, ["b"]), lambda: clusters.unlink(["b"]), lambda: clusters.link(0, ["b"])):
        change()
        seen.append(clusters.linkings)
    assert seen == sorted(set(seen))


def test_a_copy_and_what_it_was_made_of_change_apart():
    clusters = Clusters(CONFIG)
    clusters.assign(BASE)
    copy = clusters.copy()
    assert (copy.all(), copy.changed()) == (clusters.all(), ())
    copy.link(copy.assign(BETWEEN), ["a"])
    clusters.assign("x y z")
    assert copy.all() == (Cluster(0, BASE, ("a",)),)
    assert clusters.all() == (Cluster(0, BASE), Cluster(1, "x y z"))


def test_what_is_unlinked_belongs_nowhere_and_only_its_clusters_change():
    made = [Cluster(0, BASE, ("a", "b")), Cluster(1, "x y z", ("b", "c")), Cluster(2, "u v w", ("c",))]
    clusters = Clusters(CONFIG, made)
    clusters.unlink([])
    clusters.unlink(["none"])
    assert clusters.changed() == ()
    clusters.unlink(["b"])
    assert clusters.changed() == (Cluster(0, BASE, ("a",)), Cluster(1, "x y z", ("c",)))
    clusters.link(1, ["b"])
    assert clusters.entries(1) == ("c", "b")


def test_a_bank_keeps_them_and_its_hash_knows(tmp_path):
    bank, clusters = Bank(tmp_path), Clusters(CONFIG)
    before, empty = bank.versions(), bank.hashes()
    for n in range(11):
        clusters.link(clusters.assign(f"place {n} a{n} b{n}"), [f"e{n}"])
    bank.merge(BankChange(clusters=clusters.changed()))
    again = Clusters(CONFIG, Bank(tmp_path).clusters())
    assert len(again) == 11
    assert all(again.nearest(f"place {n} a{n} b{n}") == n and again.entries(n) == (f"e{n}",) for n in range(11))
    assert bank.hashes()["clusters"] != empty["clusters"]
    assert bank.restore(before, empty) == ["clusters"]
    assert bank.clusters() == []


def test_a_retired_entry_is_unlinked_and_an_edited_one_stays():
    here, left = entry("mug in safe"), entry("mug in sink", retired=3)
    clusters = Clusters(ClustersConfig(), [Cluster(0, "at safe", (here.id, left.id))])
    associate(clusters, [here, left], [])
    assert clusters.entries(0) == (here.id,)


def test_an_entry_is_linked_where_its_example_was_played_and_without_it_to_every_turn_of_its_sources():
    turns = (turn(action="go safe", cluster_id=0), turn(action="take  mug", cluster_id=1), turn(action="look"))
    played = episode(turns=turns)
    sources = ("1/rollout/elsewhere/0", played.id)
    taken, used, looked = (entry(name, example=name, sources=sources) for name in ("take mug", "use mug", "look"))
    clusters = Clusters(CONFIG, [Cluster(n, f"{n}") for n in range(3)])
    associate(clusters, [taken, used, looked], [episode(1), played])
    assert [clusters.entries(n) for n in range(3)] == [(used.id,), (taken.id, used.id), ()]
