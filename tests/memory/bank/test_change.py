"""Rows of a change, and what is read back from them."""

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
