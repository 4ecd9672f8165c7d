"""The library: rows in the order that breaks ties, their pools, and their counters."""

from dataclasses import replace

import numpy as np
import pytest
from support.entries import entry

from coevo.memory.library import AdmissionState, Library
from coevo.memory.stats import Stats

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
