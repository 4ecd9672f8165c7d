"""Utility top-k: whatever is asked, the best within the scope."""

from hypothesis import given
from hypothesis import strategies as st
from support.entries import bank, entry, ranked

from coevo.configs.bank.retrieval_config import UtilityConfig
from coevo.memory.retrieval.index import Index
from coevo.memory.stats import Stats

CONFIG = UtilityConfig(type="utility", k=3)


def test_ranking_equals_the_reference_in_every_scope():
    entries, stats = bank(40, scopes=("a", "b", ""))
    index = Index(entries, CONFIG, stats)
    for scope in ("a", "b"):
        pool = {e: stats[e.id].utility for e in entries if e.scope in (scope, "")}
        assert [hit.entry.id for hit in index.search("anything", scope)] == ranked(pool, 3)


def test_a_negative_utility_is_still_returned_and_a_new_entry_counts_as_one_half():
    old, new = entry("old"), entry("new")
    hits = Index([old, new], CONFIG, {old.id: Stats(old.id, utility=-1.0)}).search("x", "")
    assert [(hit.entry, hit.score) for hit in hits] == [(new, 0.5), (old, -1.0)]


@given(st.permutations(range(12)))
def test_the_order_of_the_entries_changes_nothing(order):
    entries, stats = bank(12)
    shuffled = [entries[at] for at in order]
    assert Index(shuffled, CONFIG, stats).search("x", "") == Index(entries, CONFIG, stats).search("x", "")
