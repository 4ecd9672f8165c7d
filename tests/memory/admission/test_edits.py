"""Edit operations as an admission: what a firing decides, whatever the editor says."""

import json
import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.entries import entry

from coevo.configs.bank.admission_config import EditsAdmissionConfig
from coevo.memory.admission.edits import MAX_LINE_CHARS, admission, audited
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.edit_operations import Operation
from coevo.memory.library import AdmissionState, Library
from coevo.memory.stats import Stats, initial_stats
from coevo.memory.writers.writer import Edit, Proposal
from coevo.records.entry import entry_id

SOURCES = ("4/rollout-3/t/0",)
POOLS = ("lotus", "maple")
NOUNS = ("mug", "cup", "pan", "egg", "bowl", "fork")


def held(count=6):
    """Entries of two pools, in equal parts."""
    return [entry(f"{scope} {noun} in safe", keywords=noun, scope=scope) for noun in NOUNS for scope in POOLS][:count]


def never(added, taught):
    raise AssertionError("operations are not replayed")


def decide(edits, entries=(), stats=None, revision=5, **config):
    given = EditsAdmissionConfig(type="edits", **config)
    return admission(given).decide(Proposal(edits=tuple(edits)), Library(entries, stats), never, revision)


def on(scope, *lines):
    return [Edit(scope, line, SOURCES) for line in lines]


def after(decision, entries, stats):
    """The bank as the session keeps it: entries and counters."""
    rows = {e.id: e for e in entries} | {e.id: e for e in decision.entries}
    counters = dict(stats) | {
        s.id: s for s in initial_stats([e.id for e in decision.entries], decision.utility, stats, None)
    }
    return [e for e in rows.values() if e.active], counters


def test_a_bad_line_takes_no_other_with_it_and_is_kept_with_its_reason():
    mug, other = held(2)
    lines = [
        'ADD("lotus heat not stove")',
        'UPVOTE("cafecafecafe")',
        f'MERGE(["{mug.id}"], "lotus mug")',
        'ADD("")',
        f'ADD("{"x" * 10_000}")',
        f'UPVOTE("{mug.id}")',
        f'DOWNVOTE("{other.id}")',
        f'UPVOTE("{mug.id}")',
    ]
    decision = decide(on("lotus", *lines), [mug, other])
    assert [ruling.outcome for ruling in decision.operations] == [
        "applied", "rejected", "rejected", "rejected", "rejected", "applied", "rejected", "rejected",
    ]  # fmt: skip
    assert all(bool(ruling.reason) == (ruling.outcome == "rejected") for ruling in decision.operations)
    assert [ruling.line for ruling in decision.operations[:4]] == lines[:4]
    assert len(decision.operations[4].line) == MAX_LINE_CHARS
    assert decision.utility == {decision.entries[0].id: 1.0, mug.id: 1.5}
    assert decision.metrics == {
        "bank/edits/proposed": 8.0, "bank/edits/applied": 2.0, "bank/edits/rejected": 6.0, "bank/edits/removed": 0.0,
        "bank/edits/add": 1.0, "bank/edits/edit": 0.0, "bank/edits/upvote": 1.0, "bank/edits/downvote": 0.0,
        "bank/edits/merge": 0.0, "bank/edits/largest_pool": 2.0,
    }  # fmt: skip


def test_a_pool_has_its_own_entries_only_and_others_stay_as_they_are():
    entries = held(4)
    lotus, maple = ([e for e in entries if e.scope == scope] for scope in POOLS)
    anywhere = entry("mugs are in safes", keywords="mug")
    decision = decide(on("lotus", f'DOWNVOTE("{lotus[0].id}")', f'DOWNVOTE("{anywhere.id}")'), [*entries, anywhere])
    assert [(row.id, row.retired) for row in decision.entries] == [(lotus[0].id, 5)]
    assert "of another pool, ''" in decision.operations[1].reason
    assert decision.operations[2].entries == (lotus[0].id,)
    assert (decision.operations[2].outcome, decision.operations[2].line) == ("removed", "")
    assert not {row.id for row in decision.entries} & {e.id for e in maple}


def test_nothing_said_changes_nothing():
    assert decide([], held()).entries == ()
    assert decide([], held()).operations == ()
    assert set(decide([], held()).metrics.values()) == {0.0}


def test_a_person_has_the_last_word():
    edits = on("lotus", 'ADD("lotus heat not stove")', 'ADD("lotus heat with oven")')
    library = Library((), admission=AdmissionState(frozenset({entry_id("lotus", "lotus heat not stove")})))
    decision = admission(EditsAdmissionConfig(type="edits")).decide(Proposal(edits=tuple(edits)), library, never, 5)
    assert [(ruling.id, ruling.outcome, ruling.reason) for ruling in decision.operations] == [
        ("00000005/000000", "rejected", "says what a person has retired"),
        ("00000005/000001", "applied", ""),
    ]


def test_rulings_survive_the_bank_and_a_second_merge_adds_none(tmp_path):
    decision = decide(on("lotus", 'ADD("lotus heat not stove")', "nonsense \ud800 \x1b[2J", 'UPVOTE("x")'), held())
    change = BankChange(operations=decision.operations)
    bank = Bank(tmp_path)
    bank.merge(change)
    hashes = bank.hashes()
    bank.merge(change)
    assert Bank(tmp_path).operations() == list(decision.operations)
    assert Bank(tmp_path).hashes() == hashes
    assert decision.operations[1].line == "nonsense \\ud800 \\x1b[2J"


@given(st.text(st.characters(codec=None), max_size=2 * MAX_LINE_CHARS))
@settings(max_examples=100, deadline=None)
def test_what_is_kept_for_audit_is_short_and_printable(line):
    assert len(audited(line)) <= MAX_LINE_CHARS
    assert audited(line).isprintable()
    audited(line).encode()


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("x" * 300, "x" * 300),
        ("x" * 301, "x" * 297 + "..."),
        ("\x1b" * 75, r"\x1b" * 75),
        ("\x1b" * 76, r"\x1b" * 74 + r"\..."),
    ],
    ids=["as long as may be", "longer", "as long once escaped", "longer once escaped"],
)
def test_three_hundred_characters_of_a_line_are_kept(line, kept):
    assert audited(line) == kept


IDS = st.sampled_from([e.id for e in held()] + ["cafecafecafe"])
WORDINGS = st.sampled_from(["heat with oven", "heat not stove", "mug in drawer", "mug in safe", "cup in box", "", "!"])
PROPOSED = st.one_of(
    st.builds(lambda text: f"ADD({json.dumps(text)})", WORDINGS),
    st.builds(lambda name, text: f'EDIT("{name}", {json.dumps(text)})', IDS, WORDINGS),
    st.builds(lambda kind, name: f'{kind}("{name}")', st.sampled_from(["UPVOTE", "DOWNVOTE"]), IDS),
    st.builds(
        lambda names, text: f"MERGE({json.dumps(names)}, {json.dumps(text)})", st.lists(IDS, max_size=3), WORDINGS
    ),
    st.sampled_from(["", "ADD", "ADD(", "MERGE([], 7)", "I would not change anything."]),
)
FIRINGS = st.lists(st.lists(st.tuples(st.sampled_from(POOLS), PROPOSED), max_size=12), max_size=5)


@given(FIRINGS, st.integers(1, 5), st.sampled_from([0.5, 1.0]))
@settings(max_examples=200, deadline=None)
def test_no_sequence_of_operations_breaks_the_bank(firings, capacity, threshold):
    entries, stats = held(), {e.id: Stats(e.id, utility=1.0) for e in held()}
    for revision, said in enumerate(firings, start=2):
        edits = [Edit(scope, line, SOURCES) for scope, line in said]
        decision = decide(edits, entries, stats, revision, capacity=capacity, threshold=threshold)
        outcomes = Counter(ruling.outcome for ruling in decision.operations)
        assert outcomes["applied"] + outcomes["rejected"] == len(said) == decision.metrics["bank/edits/proposed"]
        assert len({ruling.id for ruling in decision.operations}) == len(decision.operations)
        assert len({row.id for row in decision.entries}) == len(decision.entries)

        left = {name for ruling in decision.operations if ruling.outcome == "removed" for name in ruling.entries}
        before = entries
        entries, stats = after(decision, entries, stats)
        ids = [e.id for e in entries]
        assert len(set(ids)) == len(ids)
        assert not left & set(ids)
        gone = {e.id for e in before} - set(ids)
        merged = {name for ruling in decision.operations if ruling.line[:5] == "MERGE" for name in ruling.entries[1:]}
        assert gone <= left | merged
        for scope in {scope for scope, _ in said}:
            pool = [e for e in entries if e.scope == scope]
            assert len(pool) <= capacity
            assert len({e.strategy for e in pool}) == len(pool)
            assert all(stats[e.id].utility >= threshold for e in pool)
            assert all(e.strategy and e.keywords and e.sources for e in pool)


@given(st.randoms(use_true_random=False), st.integers(1, 8))
@settings(max_examples=100, deadline=None)
def test_the_order_of_independent_operations_does_not_matter(draws, capacity):
    a, b, c, d, e = (each for each in [*held(12)] if each.scope == "lotus" and "fork" not in each.strategy)
    operations = [
        Operation("ADD", (), "lotus heat with oven"),
        Operation("ADD", (), "lotus heat not stove"),
        Operation("EDIT", (a.id,), "lotus mug in drawer"),
        Operation("UPVOTE", (b.id,)),
        Operation("DOWNVOTE", (c.id,)),
        Operation("MERGE", (d.id, e.id), "lotus egg and bowl in safe"),
    ]
    entries = held(12)
    straight = decide(on("lotus", *(each.line() for each in operations)), entries, capacity=capacity)
    draws.shuffle(operations)
    shuffled = decide(on("lotus", *(each.line() for each in operations)), entries, capacity=capacity)
    assert (shuffled.entries, shuffled.utility) == (straight.entries, straight.utility)
    assert shuffled.metrics == straight.metrics


def test_five_hundred_malformed_lines_are_each_accounted_for():
    draws = random.Random(7)
    entries = held()
    stats = {e.id: Stats(e.id, utility=1.0) for e in entries}
    good = [operation.line() for operation in (
        Operation("ADD", (), "lotus heat not stove"), Operation("EDIT", (entries[0].id,), "lotus mug in drawer"),
        Operation("MERGE", (entries[2].id, entries[4].id), "lotus cup and pan in safe"),
    )]  # fmt: skip
    alphabet = '"\\()[]{},:AEUDM 0\n\x00\u202e\ud800\uff1c|<>x'
    lines = []
    for _ in range(500):
        letters = list(draws.choice(good))
        for _ in range(draws.randint(1, 6)):
            directory = draws.randrange(len(letters) + 1)
            letters[directory : directory + draws.randint(0, 3)] = draws.choices(alphabet, k=draws.randint(0, 4))
        lines.append("".join(letters) * draws.choice([1, 1, 1, 500]))
    decision = decide(on("lotus", *lines), entries, stats)
    proposed = [ruling for ruling in decision.operations if ruling.outcome != "removed"]
    assert len(proposed) == 500
    assert sum(ruling.outcome == "rejected" for ruling in proposed) > 400
    assert all(ruling.reason and len(ruling.reason) < 250 for ruling in proposed if ruling.outcome == "rejected")
    now, counters = after(decision, entries, stats)
    assert {e.id for e in now if e.scope == "maple"} == {e.id for e in entries if e.scope == "maple"}
    assert all(e.strategy.isprintable() for e in now)
    assert set(decision.utility) <= set(counters)


def test_a_retired_entry_is_not_voted_for():
    mug = replace(held(1)[0], retired=3)
    decision = decide(on("lotus", f'UPVOTE("{mug.id}")'), [mug])
    assert "is no entry of the pool" in decision.operations[0].reason
