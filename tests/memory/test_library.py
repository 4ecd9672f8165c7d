"""The library: rows in the order that breaks ties, their pools, and their counters."""

from dataclasses import replace

import numpy as np
import pytest
from support.entries import bank, entry

from coevo.memory import library
from coevo.memory.library import AdmissionState, Catalogue, Column, Library, PerEntry
from coevo.memory.stats import Stats
from coevo.records.draws import generator, key

ANYWHERE, LOTUS, MAPLE = (entry(name, scope=scope, edited=n) for n, (name, scope) in enumerate(
    (("a", ""), ("b", "lotus"), ("c", "maple"))))  # fmt: skip
STATS = {LOTUS.id: Stats(LOTUS.id, 4, 3, 0.75, 6)}
LIBRARY = Library([ANYWHERE, LOTUS, MAPLE, replace(entry("d"), retired=3)], STATS)


def test_the_latest_edit_comes_first_and_retired_entries_are_no_rows():
    assert LIBRARY.entries == [MAPLE, LOTUS, ANYWHERE]
    assert LIBRARY.some(np.array([2, 0])) == [ANYWHERE, MAPLE]
    assert LIBRARY.row_of == {MAPLE.id: 0, LOTUS.id: 1, ANYWHERE.id: 2}
    assert len(LIBRARY) == 3


@pytest.mark.parametrize(
    ("scope", "rows"), [(None, [0, 1, 2]), ("maple", [0, 2]), ("lotus", [1, 2]), ("", [2]), ("unknown", [2])]
)
def test_a_pool_has_its_own_entries_and_those_of_every_pool(scope, rows):
    assert LIBRARY.rows(scope).tolist() == rows


def test_an_entry_without_counters_is_new():
    assert LIBRARY.utility.tolist() == [0.5, 0.75, 0.5]
    assert LIBRARY.visits.tolist() == [1, 6, 1]
    # (successes + 1) / (retrievals + 2)
    assert LIBRARY.usefulness.tolist() == [1 / 2, 4 / 6, 1 / 2]
    bare = Library([])
    assert (bare.admission, bare.clusters, bare.rows("").tolist()) == (AdmissionState(), None, [])


SCOPES = ("", "lotus", "maple")


def entries_of(found):
    return [found.seen[number] for number in found.numbers]


def scopes_of(found):
    names = {number: scope for scope, number in found.scope_numbers.items()}
    return [names[number] for number in found.scopes]


def versions(count, seed=0):
    """Versions of a bank: in each some entries go, some change, some are retired and some come; orders differ."""
    entries, _ = bank(40 + 10 * count, seed, SCOPES)
    draws = generator(key(seed, "versions"))
    held, later = entries[:40], entries[40:]
    for version in range(count):
        yield [held[at] for at in draws.permutation(len(held))]
        kept = [entry for entry in held if draws.random() > 0.1]
        changed = [replace(entry, edited=version + 5) if draws.random() < 0.1 else entry for entry in kept]
        held = [replace(entry, retired=version) if draws.random() < 0.05 else entry for entry in changed]
        held += later[10 * version : 10 * version + int(draws.integers(11))]


@pytest.mark.parametrize("slack", [0, 1024])
def test_every_version_equals_one_made_from_scratch_and_earlier_ones_stay(slack, monkeypatch):
    monkeypatch.setattr(library, "SLACK", slack)
    found, before = Catalogue(()), []
    for given in versions(20):
        found = found.over(given)
        plain = Catalogue(given)
        assert entries_of(found) == entries_of(plain)
        assert scopes_of(found) == scopes_of(plain) == [entry.scope for entry in entries_of(plain)]
        before.append((found, entries_of(plain)))
    assert all(entries_of(found) == entries for found, entries in before)


def test_two_versions_of_one_do_not_disturb_each_other():
    entries, _ = bank(30)
    start = Catalogue(entries[:20])
    one, two = start.over(entries[:25]), start.over(entries[10:20] + entries[25:])
    assert set(entries_of(one)) == set(entries[:25])
    assert set(entries_of(two)) == set(entries[10:20] + entries[25:])
    assert set(entries_of(two.over(entries))) == set(entries_of(one.over(entries))) == set(entries)


@pytest.mark.parametrize(("kept", "fresh", "numbers"), [(8, 0, 20), (7, 0, 7), (7, 2, 22), (6, 2, 8)])
def test_entries_that_are_gone_are_forgotten_once_they_are_many(kept, fresh, numbers, monkeypatch):
    """Beyond two numbers per entry and a slack of four: 20 > 2 * 7 + 4, and 20 + 2 > 2 * (6 + 2) + 4."""
    monkeypatch.setattr(library, "SLACK", 4)
    entries, _ = bank(30)
    found = Catalogue(entries[:20]).over(entries[:kept] + entries[20 : 20 + fresh])
    assert len(found.seen) == numbers
    assert set(entries_of(found)) == {*entries[:kept], *entries[20 : 20 + fresh]}


def test_a_version_without_a_change_spends_no_number():
    entries, _ = bank(10)
    found = Catalogue(entries)
    for _ in range(3):
        found = found.over(entries[::-1])
    assert (len(found.seen), found.numbers.tolist()) == (10, list(range(10)))


def test_values_are_computed_once_per_entry():
    entries, _ = bank(12)
    asked = []

    def compute(some):
        asked.extend(some)
        return np.array([len(entry.strategy) for entry in some], np.intp)

    lengths, found = PerEntry(compute), Catalogue(entries[:8])
    for given in (entries[:8], entries[2:10], entries[2:]):
        found = found.over(given)
        assert lengths.of(found).tolist() == [len(entry.strategy) for entry in entries_of(found)]
    assert len(asked) == len(set(asked)) == 12
    assert lengths.of(Catalogue(entries[:1])).tolist() == [len(entries[0].strategy)]


def test_what_was_read_from_a_column_stays():
    column = Column(np.int32, 2)
    column.extend([[1, 2]])
    first = column.read()
    for value in range(50):
        column.extend([[value, value]])
    assert first.tolist() == [[1, 2]]
    assert column.read()[:3].tolist() == [[1, 2], [0, 0], [1, 1]]
    assert len(column) == 51
