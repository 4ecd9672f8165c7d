"""95 % intervals against the textbook, and to the last bit against the formula that earlier revisions used."""

import random
from statistics import mean, stdev

import pytest

from coevo.records.intervals import around, of_mean, of_share, paired, student


def test_the_interval_of_paired_outcomes():
    # Gains 1, 1, 0, 0: mean 1/2, deviation sqrt(1/3), half width 1.96 * .5774 / 2.
    found = paired([1, 1, 1, 0], [0, 0, 1, 0])
    assert (found.mean, found.low, found.high) == pytest.approx((0.5, -0.065803, 1.065803), abs=1e-6)
    assert str(found) == "+0.500 [-0.066, +1.066]"


def test_outcomes_give_the_bits_of_earlier_revisions():
    draws = random.Random(0)
    for count in range(2, 200):
        ours, theirs = ([draws.randrange(2) for _ in range(count)] for _ in range(2))
        gains = [a - b for a, b in zip(ours, theirs, strict=True)]
        half = 1.96 * stdev(gains) / len(gains) ** 0.5
        found = paired(ours, theirs)
        assert (found.mean, found.low, found.high) == (mean(gains), mean(gains) - half, mean(gains) + half)


def test_the_interval_around_a_mean():
    assert (around(0.5, 0.25).low, around(0.5, 0.25).high) == (0.5 - 1.96 * 0.25, 0.5 + 1.96 * 0.25)


def test_sides_of_different_length_are_refused():
    with pytest.raises(ValueError, match="zip"):
        paired([1, 0], [1, 0, 1])


@pytest.mark.parametrize(
    ("share", "count", "low", "high"),
    [(0.0, 10, 0.0, 0.2775), (1.0, 10, 0.7225, 1.0), (0.5, 10, 0.2366, 0.7634), (0.2, 50, 0.1124, 0.3304)],
)
def test_the_interval_of_a_share(share, count, low, high):
    # Wilson (1927), with 1.96.
    found = of_share(share, count)
    assert (found.mean, found.low, found.high) == (share, pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


@pytest.mark.parametrize(("share", "count"), [(1.0, 19), (1.0, 10), (0.0, 10), (1e-16, 1), (1e-17, 8)])
def test_the_interval_of_a_share_lies_between_0_and_1(share, count):
    """To the last bit: without bounds, rounding would put the ends of some of these outside."""
    found = of_share(share, count)
    assert 0.0 <= found.low <= found.high <= 1.0


def test_a_paired_difference_has_students_interval():
    # Gains .1, .2, .3: sd .1, t(.975, 2) = 4.302653, half = 4.302653 * .1 / sqrt(3) = .248414
    found = student([0.6, 0.8, 1.0], [0.5, 0.6, 0.7])
    assert (found.mean, found.low, found.high) == pytest.approx((0.2, -0.048414, 0.448414), abs=1e-6)


def test_a_mean_has_students_interval():
    found = of_mean([0.6, 0.7, 0.8])
    assert (found.mean, found.low, found.high) == pytest.approx((0.7, 0.451586, 0.948414), abs=1e-6)
