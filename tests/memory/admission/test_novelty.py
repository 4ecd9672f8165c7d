"""Novelty is what an exact scan over the entries of zone and pool says."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.entries import entry

from coevo.memory.admission.score import Known
from coevo.memory.library import Library
from coevo.memory.similarity import TOKEN

TEXTS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=14).map(" ".join)
ENTRIES = st.builds(entry, TEXTS, scope=st.sampled_from(["", "s", "t"]), zone=st.sampled_from(["strategy", "warning"]))
LEAST = 0.85


def similarity(a, b):
    """2 LCS / (|a| + |b|), written out."""
    a, b = TOKEN.findall(a), TOKEN.findall(b)
    table = {(i, j): 0 for i in range(len(a) + 1) for j in range(len(b) + 1)}
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1, j + 1] = table[i, j] + 1 if x == y else max(table[i, j + 1], table[i + 1, j])
    return 2 * table[len(a), len(b)] / (len(a) + len(b))


def scan(entries, candidate):
    return any(
        held.id == candidate.id
        or (held.zone == candidate.zone and held.scope in ("", candidate.scope)
            and similarity(held.strategy, candidate.strategy) >= LEAST)
        for held in entries
    )  # fmt: skip


@settings(deadline=None)
@given(st.lists(ENTRIES, max_size=8, unique_by=lambda each: each.id), st.lists(ENTRIES, min_size=1, max_size=4))
def test_the_same_as_an_exact_scan_while_entries_come_and_go(held, candidates):
    known = Known(Library(held), LEAST)
    active = list(held)
    for candidate in candidates:
        assert known.has_like(candidate) == scan(active, candidate)
        if not known.has_like(candidate):
            known.add(candidate)
            active.append(candidate)


def test_words_count_and_characters_do_not():
    held = entry("lotus heat with microwave", scope="lotus")
    known = Known(Library([held]), LEAST)
    # Three of four words: 0.75, though nearly all characters are the same.
    assert not known.has_like(entry("lotus heat with microwaves", scope="lotus"))
    # Eighteen of twenty words and of twenty: 0.9.
    words = [f"w{n}" for n in range(20)]
    known.add(entry(" ".join(words)))
    assert known.has_like(entry(" ".join([*words[:18], "x", "y"])))
    assert known.has_like(entry(" ".join([*words[:17], "x", "y", "z"])))  # 17 of 20 is 0.85 itself
    assert not known.has_like(entry(" ".join([*words[:16], "x", "y", "z", "u"])))


@pytest.mark.parametrize("changed", [{"zone": "warning"}, {"scope": "other"}])
def test_another_zone_or_pool_is_another_matter(changed):
    held = entry("a b c", scope="s")
    candidate = replace(entry("a b c .", scope=changed.get("scope", "s")), zone=changed.get("zone", "strategy"))
    assert similarity(held.strategy, candidate.strategy) > LEAST
    assert not Known(Library([held]), LEAST).has_like(candidate)
    assert Known(Library([held]), LEAST).has_like(entry("a b c .", scope="s"))


def test_nothing_is_held_against_what_has_left():
    held = entry("a b c", scope="s")
    known = Known(Library([held]), LEAST)
    known.forget(held)
    assert not known.has_like(entry("a b c .", scope="s"))
