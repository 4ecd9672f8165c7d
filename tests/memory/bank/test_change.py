"""Rows of a change, and what is read back from them."""

from dataclasses import replace
from itertools import product

import pytest
from support.batches import entry

from coevo.memory.bank.change import BankChange, Judged, table_to_judged, table_to_left_out
from coevo.records.entry import Verdict

A, B = entry("mug in safe"), entry("cup in safe")


def judged(revision, *entries, gain=0.5, pairs=8):
    names = tuple(each.id for each in entries)
    return Judged(Verdict(revision, names, True, 0.5, 0.25, gain, 0.125, pairs, 0.0), entries)


def verdicts(judged=(), left_out=()):
    return BankChange(judged=judged, left_out=left_out).tables()["verdicts"]


def test_a_verdict_and_a_measurement_of_the_same_entry_have_names_of_their_own():
    rows = verdicts([judged(1, A)], [judged(1, A)])
    name, other = rows["id"].to_pylist()
    assert (len(name), other) == (12, f"leave-one-out/{name}")
    assert table_to_judged(rows) == table_to_left_out(rows) == [judged(1, A)]


def test_verdicts_and_measurements_are_read_by_revision():
    rows = verdicts([judged(10, A, B), judged(9, B)], [judged(10, B), judged(2, A)])
    assert table_to_judged(rows) == [judged(9, B), judged(10, A, B)]
    assert table_to_left_out(rows) == [judged(2, A), judged(10, B)]


SHARES = (None, 0.0, *(1 / n for n in range(1, 30)))
BOUNDS = (None, -1.0, -0.25, 0.0, 0.5, 1.0, 2.0)


@pytest.mark.parametrize("bound", BOUNDS)
def test_what_a_verdict_lacks_is_lacking_when_it_is_read(bound):
    """With each share that saw a candidate: the same verdicts, and each a row of its own."""
    made = [replace(judged(1, A), verdict=replace(judged(1, A).verdict, bound=bound, seen_share=s)) for s in SHARES]
    rows = verdicts(made)
    assert rows["seen_share"].null_count == rows["bound"].null_count == 0
    assert len(set(rows["id"].to_pylist())) == len(SHARES)
    assert {each.verdict for each in table_to_judged(rows)} == {each.verdict for each in made}


def test_tables_without_a_column_of_what_may_be_lacking_are_read():
    made = [judged(revision, A) for revision, _ in enumerate(product(SHARES, BOUNDS))]
    assert table_to_judged(verdicts(made).drop_columns(["seen_share"])) == made
