"""The best entries of a sum, against the sum of everything and against numbers worked out by hand."""

import numpy as np
import pytest

from coevo.memory.retrieval import postings
from coevo.memory.retrieval.postings import PostingList, ScorePart, Sum, best, leading
from coevo.records.draws import generator, key

SIZE = 200


def drawn(seed):
    """Scores with many ties, three common words and a rare one, and a pool of half the entries."""
    draws = generator(key(seed, "parts"))

    def some(share):
        return np.flatnonzero(draws.random(SIZE) < share).astype(np.int32)

    parts = []
    for share in (0.1, 0.9, 0.5, 0.3):
        numbers = some(share)
        values = draws.choice([0.25, 0.5, 1.0], len(numbers))
        parts.append(ScorePart(float(draws.choice([0.5, 1.0, 4.0])), PostingList(numbers, values, float(values.max()))))
    return Sum(parts, SIZE), draws.random(SIZE) < 0.5


@pytest.mark.parametrize("dense", [0, 1, 1000])
@pytest.mark.parametrize("seed", range(12))
def test_the_best_and_all_that_tie_with_the_last_are_found(seed, dense, monkeypatch):
    for name, value in {"SAMPLE": 1, "READ": 50, "BLOCK": 4, "DENSE": dense}.items():
        monkeypatch.setattr(postings, name, value)
    total, half = drawn(seed)
    for pool in (None, half):
        every = total.all() if pool is None else total.all() * pool
        for k in (1, 2, 5, 40, SIZE):
            found, scores = best(total, pool, k)
            wanted = np.flatnonzero((every >= np.sort(every)[-k]) & (every > 0))
            assert set(wanted.tolist()) <= set(found.tolist())
            assert found.tolist() == sorted({*found.tolist()} & {*np.flatnonzero(every).tolist()})
            assert scores.tolist() == every[found].tolist()


def test_a_sum_has_the_entries_of_all_its_words():
    total, _ = drawn(0)
    assert total.entries().tolist() == np.flatnonzero(total.all()).tolist()
    assert Sum([], 3).entries().tolist() == []


@pytest.mark.parametrize("long", [0, 1 << 16])
def test_words_are_added_up_in_their_order_however_many_postings_they_have(long, monkeypatch):
    monkeypatch.setattr(postings, "MIN_POSTINGS_BY_WORD", long)
    first = ScorePart(1.0, PostingList(np.array([0, 2], np.int32), np.array([1e16, 1.0]), 1e16))
    second = ScorePart(2.0, PostingList(np.array([0], np.int32), np.array([0.5]), 0.5))
    third = ScorePart(1.0, PostingList(np.array([0, 1], np.int32), np.array([-1e16, 3.0]), 3.0))
    total = Sum([first, second, third], 4)
    assert total.postings == 5
    # 1e16 + 1 rounds to 1e16.
    assert total.all().tolist() == [0.0, 3.0, 1.0, 0.0]
    assert Sum([first, third, second], 4).all().tolist() == [1.0, 3.0, 1.0, 0.0]
    assert Sum([], 2).all().tolist() == [0.0, 0.0]


def test_a_part_adds_its_factor_times_the_value_of_its_word():
    part = ScorePart(2.0, PostingList(np.array([1, 4, 7], np.int32), np.array([0.5, 1.0, 2.0]), 2.0))
    assert (part.most, part.size) == (4.0, 3)
    assert part.of(np.array([0, 1, 4, 5, 7, 9], np.int32)).tolist() == [0.0, 1.0, 2.0, 0.0, 4.0, 0.0]
    sums = np.ones(9)
    part.add_to(sums)
    assert sums.tolist() == [1.0, 2.0, 1.0, 1.0, 3.0, 1.0, 1.0, 5.0, 1.0]


@pytest.mark.parametrize(("k", "first"), [(1, 3200), (2, 3168), (100, 32), (101, 1)])
def test_the_leading_reach_the_kth_best_of_blocks(k, first):
    """Of 1 to 3205 the blocks of 32 have 32, 64 and so on to 3200 as their highest."""
    assert leading(np.arange(1.0, 3206.0), k).tolist() == list(range(first - 1, 3205))


def test_of_few_sums_all_above_0_lead():
    assert leading(np.array([0.0, 1.0, 0.0, 0.25]), 1).tolist() == [1, 3]
    assert leading(np.zeros(0), 1).tolist() == []


@pytest.mark.parametrize(("highest", "near", "apart"), [(1.0, 5e-10, 2e-9), (1e-4, 5e-12, 2e-11), (100.0, 5e-8, 2e-7)])
def test_sums_that_may_be_equal_lead_together(highest, near, apart):
    sums = np.zeros(64)
    sums[[3, 40, 50]] = highest, highest - near, highest - apart
    assert leading(sums, 1).tolist() == [3, 40]
