"""Entries by term, worked out by hand."""

import numpy as np

from coevo.memory.retrieval.segment import invert, positions


def test_entries_are_listed_by_term_and_later_terms_have_none():
    # Entry 3 has term 0 twice and term 2 once, entry 4 has term 2 five times; term 1 is in no entry.
    starts, terms = np.array([7, 9, 10]), np.array([0, 2, 2], np.int32)
    found = invert(3, starts, terms, np.array([2, 1, 5], np.int32), 3)
    assert len(found) == 5
    assert found.numbers.tolist() == [3, 3, 4]
    assert found.times.tolist() == [2, 1, 5]
    first, end = found.bounds(np.array([0, 1, 2, 3, 4, 99]))
    assert first.tolist() == [0, 1, 1, 3, 3, 3]
    assert end.tolist() == [1, 1, 3, 3, 3, 3]


def test_positions_run_from_each_start_to_its_end():
    at, place = positions(np.array([5, 2, 0, 9]), np.array([8, 2, 2, 10]))
    assert at.tolist() == [5, 6, 7, 0, 1, 9]
    assert place.tolist() == [0, 0, 0, 2, 2, 3]
    assert [part.tolist() for part in positions(np.zeros(0, int), np.zeros(0, int))] == [[], []]
