"""Which history goes further."""

import pytest

from coevo.lineage.remote.compare_histories import HistoryComparison


@pytest.mark.parametrize(
    ("here", "there", "found"),
    [
        ("abc", "abc", (False, False, False)),
        ("abc", "ab", (True, False, False)),
        ("", "ab", (False, True, False)),
        ("ab", "abc", (False, True, False)),
        ("abx", "abc", (False, False, True)),
        ("x", "abc", (False, False, True)),
    ],
)
def test_standings(here, there, found):
    comparison = HistoryComparison(here, there)
    assert (comparison.ahead, comparison.behind, comparison.diverged) == found
