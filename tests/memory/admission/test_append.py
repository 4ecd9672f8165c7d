"""Append: everything enters, and what leaves, by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.entries import entry

from coevo.configs.bank.admission_config import AppendAdmissionConfig
from coevo.memory.admission.append import admission
from coevo.memory.library import Library
from coevo.memory.stats import Stats
from coevo.memory.writers.writer import Proposal


def decide(candidates, held=(), worth=None, revision=5, **config):
    stats = {name: Stats(name, utility=utility) for name, utility in (worth or {}).items()}
    made = admission(AppendAdmissionConfig(type="append", **config))
    return made.decide(Proposal(tuple(candidates)), Library(held, stats), None, revision)


def figures(decision):
    return tuple(decision.metrics[f"bank/admission/{name}"] for name in ("added", "merged", "dropped"))


A, B, C, D = (replace(entry(text), created=at) for at, text in enumerate(("ay ay", "bee bee", "sea sea", "dee dee")))


def test_all_that_is_new_enters_and_nothing_is_said_of_its_worth():
    decision = decide([A, B, A], held=[B])
    assert (decision.entries, decision.utility, decision.judged) == ((A,), {}, ())
    assert figures(decision) == (1.0, 0.0, 0.0)


def test_over_capacity_the_least_useful_leave_the_oldest_of_equals_first():
    decision = decide([D], held=[A, B, C], worth={A.id: 0.5, B.id: 0.4, C.id: 0.5}, capacity=2)
    assert decision.entries == (D, replace(A, retired=5), replace(B, retired=5))
    assert figures(decision) == (1.0, 0.0, 2.0)
    # New entries were never tried: they leave only where there is nothing else.
    assert decide([C, D], held=[A], worth={A.id: 0.9}, capacity=1).entries == (D, replace(A, retired=5))
    for room in (3, 4, 5):
        assert decide([C], held=[A, B], capacity=room).entries == (C,)


def test_the_last_entries_of_a_pool_are_kept():
    here, there = [replace(each, scope="h") for each in (A, B, C)], replace(D, scope="t")
    decision = decide([here[2], there], held=here[:2], per_key=2)
    assert decision.entries == (here[2], there, replace(here[0], retired=5))
    assert decide(here, per_key=2).entries == (here[1], here[2])


def test_a_near_duplicate_of_the_pool_is_one_more_source_of_the_older():
    def said(text, source, scope=""):
        return replace(entry(text, scope=scope), sources=(source,))

    old, near = said("always look into the safe in lotus first", "1"), said("always look into the safe in lotus", "2")
    # 8 and 7 tokens, 7 in common: 14/15.
    decision = decide([near], held=[old], merge=0.85)
    assert decision.entries == (replace(old, sources=("1", "2"), edited=5),)
    assert figures(decision) == (0.0, 1.0, 0.0)
    assert decide([near], held=[old], merge=0.95).entries == (near,)
    assert decide([near], held=[old]).entries == (near,)
    elsewhere = said(near.strategy, "2", scope="cedar")
    assert decide([elsewhere], held=[old], merge=0.85).entries == (elsewhere,)
    assert decide([old, near], merge=0.85).entries == (replace(old, sources=("1", "2"), edited=5),)
    assert decide([old], held=[near], merge=0.85).entries == (replace(near, sources=("2", "1"), edited=5),)


@pytest.mark.parametrize(("before", "after"), [(14, 16), (15, 16), (16, 16), (17, 17)])
def test_sources_are_bounded(before, after):
    """At most sixteen; an older entry keeps those that it has."""
    names = tuple(map(str, range(before)))
    old, near = entry("always look into the safe"), replace(entry("always look into the safe !"), sources=("x", "y"))
    decision = decide([near], held=[replace(old, sources=names)], merge=0.8)
    expected = (replace(old, sources=(*names, "x", "y")[:after], edited=5),)
    assert decision.entries == (expected if after > before else ())
    assert figures(decision) == (0.0, 1.0, 0.0)


WORDS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4).map(" ".join)
ENTRIES = st.lists(
    st.builds(
        lambda text, scope, at: replace(entry(text, scope=scope), created=at),
        WORDS,
        st.sampled_from("xy"),
        st.integers(0, 3),
    ),
    max_size=12,
    unique_by=lambda each: each.id,
)


@given(ENTRIES, ENTRIES, st.integers(1, 6), st.integers(1, 3), st.sampled_from([None, 0.6, 1.0]))
def test_bounds_hold_and_everything_is_accounted_for(candidates, held, capacity, per_key, merge):
    decision = decide(candidates, held=held, capacity=capacity, per_key=per_key, merge=merge)
    after = {each.id: each for each in (*held, *decision.entries)}
    active = [each for each in after.values() if each.active]
    assert len(active) <= capacity
    assert max((sum(each.scope == scope for each in active) for scope in "xy"), default=0) <= per_key
    assert set(after) <= {each.id for each in (*held, *candidates)}
    assert len({each.id for each in decision.entries}) == len(decision.entries)


@pytest.mark.parametrize("merge", [None, 0.85])
def test_nothing_proposed_changes_nothing(merge):
    assert decide([], held=[A, B], merge=merge).entries == ()
