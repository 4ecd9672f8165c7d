"""Retirement counters of entries between firings."""

import pytest

from coevo.memory.retirement_counters import RetirementCounter, counted, parse, text
from coevo.utilities.errors import CoevoError


def test_a_firing_counts_for_the_entries_that_it_passed_by():
    before = {
        "a": RetirementCounter("a", 3, 1),
        "b": RetirementCounter("b", 0, 4),
        "gone": RetirementCounter("gone", 9, 9),
    }
    after = counted(before, ["b", "a", "new"], seen={"a", "new"}, judged={"a"})
    assert list(after.values()) == [
        RetirementCounter("a", 0, 0),
        RetirementCounter("b", 1, 5),
        RetirementCounter("new", 1, 0),
    ]


def test_no_entry_is_unseen_while_the_bank_is_not_shown():
    assert counted({"a": RetirementCounter("a", 0, 2)}, ["a"], seen=(), judged=()) == {
        "a": RetirementCounter("a", 1, 2)
    }
    # One entry that was shown is enough; nothing is known of ``a`` before.
    assert counted({}, ["a"], seen={"b"}, judged=()) == {"a": RetirementCounter("a", 1, 1)}


def test_standings_survive_their_text():
    counters = {name: RetirementCounter(name, 1, 2) for name in "ba"}
    assert parse(text(counters)) == counters
    assert text(counters) == text(dict(reversed(counters.items())))
    assert parse('[{"id": "a"}]') == {"a": RetirementCounter("a", 0, 0)}
    assert text({"a": RetirementCounter("a", 3, 2)}) == '[\n{\n"id": "a",\n"unseen": 2,\n"waited": 3\n}\n]'


@pytest.mark.parametrize("lines", ["{", '[{"id": "a", "waited": -1}]', '[{"id": "a", "more": 1}]', '[{"waited": 1}]'])
def test_standings_of_another_form_are_refused_in_one_line(lines):
    with pytest.raises(CoevoError, match=r"retirement counters cannot be read: .*roll back to another$"):
        parse(lines)
