"""Score-based admission under capacity: worked values, and what holds for every set of candidates."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.entries import entry

from coevo.configs.bank.admission_config import CapacityConfig, ScoreAdmissionConfig
from coevo.memory.admission.admission import Decision
from coevo.memory.admission.score import admission
from coevo.memory.library import Library
from coevo.memory.stats import Stats
from coevo.memory.writers.writer import Proposal

QUIET = {"duplicates": 0, "refused": 0, "replaced": 0, "tied": 0, "pruned": 0}


def named(name, zone="strategy", level="example", created=1):
    """An entry that is like no other one."""
    return replace(entry(f"{name}1 {name}2 {name}3", zone=zone), level=level, created=created)


def decide(worth, held=(), stats=(), revision=5, **config):
    """``worth``: of each candidate; ``held``: entries of the library with theirs."""
    capacity = CapacityConfig(**config.pop("capacity", {}))
    settings = ScoreAdmissionConfig(type="score", capacity=capacity, **config)
    counters = {each.id: Stats(each.id, utility=z) for each, z in dict(held).items()} | {
        each.id: each for each in stats
    }
    proposal = Proposal(tuple(worth), {candidate.id: z for candidate, z in worth.items()})
    return admission(settings).decide(proposal, Library(dict(held), counters), None, revision)


def names(entries):
    return sorted(each.strategy.split("1")[0] for each in entries)


def entered(decision):
    return names(each for each in decision.entries if each.active)


def left(decision):
    return names(each for each in decision.entries if not each.active)


def counted(decision):
    return {name: count for name in QUIET if (count := decision.metrics[f"bank/admission/{name}"])}


def test_while_there_is_room_whatever_is_new_enters_with_its_worth():
    a, b = named("a"), named("b")
    decision = decide({a: 1.0, b: 0.0})
    assert (set(decision.entries), decision.utility, counted(decision)) == ({a, b}, {a.id: 1.0, b.id: 0.0}, {})
    assert (decision.metrics["bank/admission/strategies"], decision.metrics["bank/admission/warnings"]) == (2.0, 0.0)
    assert decide({}) == Decision(
        metrics={f"bank/admission/{name}": 0.0 for name in (*QUIET, "strategies", "warnings")}
    )


def test_a_full_shelf_yields_to_more_worth_only():
    held = {named("low"): 0.25, named("high"): 0.75}
    room = {"capacity": {"strategy": 2}}
    better = decide({named("new"): 0.5}, held, **room)
    assert (entered(better), left(better), counted(better)) == (["new"], ["low"], {"replaced": 1})
    (retired,) = (each for each in better.entries if not each.active)
    assert retired == replace(named("low"), retired=5)
    worse = decide({named("new"): 0.2}, held, **room)
    assert (worse.entries, worse.utility, counted(worse)) == ((), {}, {"refused": 1})


def test_in_a_tie_the_least_useful_leaves_then_the_oldest():
    old, new, useful = named("old", created=1), named("new", created=2), named("useful", created=0)
    held = dict.fromkeys((old, new, useful), 1.0)
    room = {"capacity": {"strategy": 3}}
    # Seen by four episodes, of which three succeeded: (3 + 1) / (4 + 2); the others were never seen: 1/2.
    served = Stats(useful.id, 4, 3, utility=1.0)
    tie = decide({named("x"): 1.0}, held, [served], **room)
    assert (entered(tie), left(tie), counted(tie)) == (["x"], ["old"], {"tied": 1})
    useless = Stats(new.id, 4, 1, utility=1.0)
    assert left(decide({named("x"): 1.0}, held, [served, useless], **room)) == ["new"]
    paper = decide({named("x"): 1.0}, held, [served], ties="refuse", **room)
    assert (paper.entries, counted(paper)) == ((), {"refused": 1})


def test_what_has_just_come_is_not_replaced_in_a_tie():
    candidates = {named(name): 1.0 for name in "abc"}
    decision = decide(candidates, {named("old"): 1.0}, capacity={"strategy": 2})
    assert (len(entered(decision)), left(decision)) == (2, ["old"])
    assert counted(decision) == {"tied": 1, "refused": 1}


def test_every_zone_and_level_has_a_shelf_of_its_own():
    shelves = [(zone, level) for zone in ("strategy", "warning") for level in ("principle", "pattern", "example")]
    held = {named(f"{zone}{level}", zone, level): 1.0 for zone, level in shelves}
    room = {"capacity": {"strategy": 2, "warning": 1}}
    decision = decide({named(f"new{zone}{level}", zone, level): 0.5 for zone, level in shelves}, held, **room)
    assert Counter(each.zone for each in decision.entries) == {"strategy": 3}
    assert counted(decision) == {"refused": 3}
    assert (decision.metrics["bank/admission/strategies"], decision.metrics["bank/admission/warnings"]) == (6.0, 3.0)


def test_duplicates_are_told_from_the_bank_and_from_each_other():
    words = [f"w{n}" for n in range(20)]
    held, near, nearer = (entry(" ".join([*words[: 20 - n], *"xyz"[:n]])) for n in (0, 1, 2))
    decision = decide({near: 1.0}, {held: 0.0})
    assert (decision.entries, counted(decision)) == ((), {"duplicates": 1})
    both = decide({near: 0.5, nearer: 1.0})
    assert (both.entries, counted(both)) == ((nearer,), {"duplicates": 1})
    assert len(decide({near: 0.5, nearer: 1.0}, novelty=0.99).entries) == 2


def test_a_shelf_that_holds_too_many_loses_its_lowest():
    held = {named(name): worth for name, worth in zip("abcd", (0.4, 0.1, 0.3, 0.2), strict=True)}
    decision = decide({}, held, capacity={"strategy": 2})
    assert (left(decision), counted(decision)) == (["b", "d"], {"pruned": 2})
    replaced = decide({named("x"): 0.35}, held, capacity={"strategy": 2})
    assert (entered(replaced), left(replaced)) == (["x"], ["b", "c", "d"])


WORTH = st.sampled_from([0.0, 0.5, 1.0])
ENTRY = st.builds(
    named,
    st.sampled_from("abcdefghijklmnop"),
    st.sampled_from(["strategy", "warning"]),
    st.sampled_from(["principle", "pattern", "example", ""]),
    st.integers(0, 4),
)
LIBRARIES = st.lists(st.tuples(ENTRY, WORTH, st.integers(0, 5), st.integers(0, 5)), max_size=12)
CANDIDATES = st.lists(st.tuples(ENTRY, WORTH), max_size=12)
ROOM = st.fixed_dictionaries({"strategy": st.integers(1, 4), "warning": st.integers(1, 3)})
TIES = st.sampled_from(["replace", "refuse"])


def drawn(library, candidates):
    """Entries of unique ids: a candidate may have that of an entry of the library."""
    rows = {each.id: (each, z, seen, won) for each, z, seen, won in library}
    held = {each: z for each, z, _, _ in rows.values()}
    stats = [Stats(name, seen + won, won, z) for name, (_, z, seen, won) in rows.items()]
    return held, stats, dict({each.id: (each, z) for each, z in candidates}.values())


def after(held, decision):
    rows = {each.id: each for each in held} | {each.id: each for each in decision.entries}
    return [each for each in rows.values() if each.active]


@settings(deadline=None)
@given(LIBRARIES, CANDIDATES, ROOM, TIES)
def test_capacity_holds_and_every_candidate_and_entry_is_accounted_for(library, candidates, room, ties):
    held, stats, proposed = drawn(library, candidates)
    decision = decide(proposed, held, stats, capacity=room, ties=ties)
    shelves = Counter((each.zone, each.level) for each in after(held, decision))
    assert all(count <= room[zone] for (zone, _), count in shelves.items())
    new = [each for each in decision.entries if each.active]
    gone = [each for each in decision.entries if not each.active]
    outcomes = {name: decision.metrics[f"bank/admission/{name}"] for name in QUIET}
    assert len({each.id for each in decision.entries}) == len(decision.entries)
    assert len(proposed) == len(new) + outcomes["duplicates"] + outcomes["refused"]
    assert len(gone) == outcomes["replaced"] + outcomes["tied"] + outcomes["pruned"]
    assert {each.id for each in gone} <= {each.id for each in held}
    assert decision.utility == {each.id: proposed[each] for each in new}


@settings(deadline=None)
@given(LIBRARIES, CANDIDATES, ROOM, TIES, st.randoms())
def test_the_order_of_candidates_and_entries_changes_nothing(library, candidates, room, ties, random):
    held, stats, proposed = drawn(library, candidates)
    decision = decide(proposed, held, stats, capacity=room, ties=ties)
    rows, shuffled = list(held.items()), list(proposed.items())
    random.shuffle(rows)
    random.shuffle(shuffled)
    assert decide(dict(shuffled), dict(rows), stats, capacity=room, ties=ties) == decision


@settings(deadline=None)
@given(LIBRARIES, CANDIDATES, ROOM)
def test_nothing_leaves_for_what_is_worth_less(library, candidates, room):
    held, stats, proposed = drawn(library, candidates)
    decision = decide(proposed, held, stats, capacity=room)
    best = {}
    for each in decision.entries:
        if each.active:
            shelf = each.zone, each.level
            best[shelf] = min(best.get(shelf, 9.0), proposed[each])
    pruned = decide({}, held, stats, capacity=room).entries
    for each in decision.entries:
        if not each.active and each not in pruned:
            assert held[replace(each, retired=-1)] <= best[each.zone, each.level]


@pytest.mark.parametrize("ties", ["replace", "refuse"])
def test_a_stream_of_equal_candidates_keeps_the_bank_at_its_capacity(ties):
    held = {}
    for firing in range(6):
        decision = decide({named(f"n{firing}x{n}"): 1.0 for n in range(3)}, held, capacity={"strategy": 4}, ties=ties)
        held = dict.fromkeys(after(held, decision), 1.0)
    assert len(held) == 4
    assert any(each.strategy.startswith("n5") for each in held) == (ties == "replace")
