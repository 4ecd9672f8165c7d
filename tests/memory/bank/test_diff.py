"""Differences of two banks."""

from dataclasses import replace

import coevo.memory.bank.diff
from coevo.memory.bank.diff import BankDiff
from coevo.records.arrow import entries_to_table
from coevo.records.entry import Entry


def entry(name, **changes):
    return replace(Entry(name, f"lesson {name}", "", "", name, "", "train", ("1/r/t/0",), 1, 1), **changes)


def diff(old, new):
    return coevo.memory.bank.diff.diff(entries_to_table(old), entries_to_table(new))


def test_a_source_more_is_an_edit():
    old, new = entry("a"), entry("a", sources=("1/r/t/0", "1/r/t/1"))
    assert diff([old], [new]).edited == ((old, new),)


def test_added_edited_and_retired():
    old = [entry("a"), entry("b"), entry("c"), entry("d"), entry("e", retired=0)]
    new = [entry("f"), entry("e"), entry("d"), entry("c", retired=2), entry("b", strategy="better", edited=2)]
    assert diff(old, new) == BankDiff(
        added=(entry("e"), entry("f")),
        edited=((entry("b"), entry("b", strategy="better", edited=2)),),
        retired=(entry("a"), entry("c")),
    )


def test_a_bank_does_not_differ_from_itself():
    bank = [entry("a"), entry("b", retired=3)]
    assert diff(bank, bank[::-1]) == BankDiff((), (), ())


def test_backwards_swaps_added_and_retired():
    old, new = [entry("a")], [entry("a"), entry("b")]
    assert diff(old, new).added == diff(new, old).retired == (entry("b"),)


def test_a_large_bank_is_compared_by_id():
    # Pairwise comparison would take hours here.
    old = [entry(f"{i:05}") for i in range(20_000)]
    assert diff(old, [*old[1:], entry("new")]) == BankDiff((entry("new"),), (), (old[0],))
