"""Sums of two scores, each relative to the best of its question, worked out by hand."""

import pytest
from support.entries import Asked, Fixed, bank

from coevo.memory.library import Library
from coevo.memory.retrieval.hybrid import Hybrid
from coevo.memory.retrieval.scorer import NEVER


@pytest.mark.parametrize(
    ("lexical", "semantic", "expected"),
    [
        ((4.0, NEVER, 1.0), (0.1, 0.4, 0.2), (0.8125, 0.25, 0.3125)),
        ((0.5, NEVER, 0.25), (-0.5, -0.25, 0.5), (0.75, NEVER, 0.625)),
        ((NEVER, NEVER, NEVER), (0.2, 0.0, -1.0), (0.25, NEVER, NEVER)),
        ((2.0, 1.0, 0.0), (-0.5, 0.0, -0.25), (0.75, 0.375, NEVER)),
        ((NEVER, 0.0, NEVER), (-0.5, 0.0, -0.25), (NEVER, NEVER, NEVER)),
    ],
)
def test_a_quarter_of_the_sum_is_the_cosine(lexical, semantic, expected):
    entries, _ = bank(3)
    score = Hybrid(Fixed(*lexical), Fixed(*semantic), 0.25).fit(Library(entries))
    assert score(Asked(3)).tolist() == pytest.approx(expected)


def test_without_an_entry_to_search_there_is_no_score():
    entries, _ = bank(3)
    assert Hybrid(Fixed(1, 1, 1), Fixed(1, 1, 1), 0.5).fit(Library(entries))(Asked(0)).tolist() == []
