"""95 % intervals against the textbook, and to the last bit against the formula that earlier revisions used."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_1samp
from scipy.stats import t as student_t

from coevo.records.entry import Verdict
from coevo.records.intervals import (
    Rate,
    around,
    chance_of_fall,
    chance_of_losses,
    of_gains,
    of_mean,
    of_share,
    paired,
    paired_success,
    student,
)


def test_the_interval_of_paired_outcomes():
    # Gains 1, 1, 0, 0: mean 1/2, deviation sqrt(1/3), half width 3.18245 * .57735 / 2 by t with 3 degrees.
    found = paired([1, 1, 1, 0], [0, 0, 1, 0])
    assert (found.mean, found.low, found.high) == pytest.approx((0.5, -0.418693, 1.418693), abs=1e-6)
    assert str(found) == "+0.500 [-0.419, +1.419]"


@pytest.mark.parametrize("gains", [(1, 1, 0), (-1, -1, 0), (1, 1, 1, 0), (0.5, 1.0), (1, 1), (0, 0), (1, -1)])
def test_the_interval_of_a_difference_in_success_holds_no_impossible_one(gains):
    ours, theirs = [max(gain, 0) for gain in gains], [max(-gain, 0) for gain in gains]
    found, whole = paired_success(ours, theirs), paired(ours, theirs)
    assert (found.low, found.high) == (max(-1, whole.low), min(1, whole.high))
    assert -1 <= found.low <= found.mean == whole.mean <= found.high <= 1


def test_paired_outcomes_have_the_interval_of_students_t_and_equal_ones_are_never_certain():
    draws = random.Random(0)
    for count in range(2, 100):
        ours, theirs = ([draws.randrange(2) for _ in range(count)] for _ in range(2))
        gains = [a - b for a, b in zip(ours, theirs, strict=True)]
        found = paired(ours, theirs)
        if len(set(gains)) > 1:
            wanted = ttest_1samp(gains, 0).confidence_interval(0.95)
            assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))
        equal = paired([1] * count, [0] * count)
        assert (equal.mean, equal.low, equal.high) == pytest.approx((1, 1 - 2 * (1 - 0.025 ** (1 / count)), 1))


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


def verdict(gains):
    """Verdict on these gains of the paired replays, over rewards of 0 on the other side."""
    mean = float(np.mean(gains)) if gains else 0.0
    stderr = float(np.std(gains, ddof=1)) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
    return Verdict(1, ("a",), True, mean, 0.0, mean, stderr, len(gains), 0.0)


@pytest.mark.parametrize("gains", [[1, 0, 1, 1, 0, 0, 1, 1], [1, -1], [0.25, 0.5, 0.75], [0] * 63 + [1]])
def test_a_verdict_has_students_interval(gains):
    expected = ttest_1samp(gains, 0.0).confidence_interval(0.95)
    assert verdict(gains).interval == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("pairs", [1, 2, 5, 8, 32, 1000])
def test_equal_gains_have_the_exact_interval_of_what_else_may_come(pairs):
    # Clopper and Pearson: the share of other gains after none of n; these lie anywhere between -1 and 1.
    other = binomtest(0, pairs).proportion_ci(0.95, "exact").high
    assert verdict([0.5] * pairs).interval == pytest.approx((0.5 - 1.5 * other, 0.5 + 0.5 * other))
    assert verdict([1] * pairs).interval == pytest.approx((1 - 2 * other, 1))
    found = of_gains(5.0, 0.0, pairs, 10.0)
    assert (found.low, found.high) == pytest.approx((5 - 15 * other, 5 + 5 * other))


@pytest.mark.parametrize("gains", [[1, 1], [0.5, 0.5], [0.1 + 0.2, 0.3], [0.3], []])
def test_few_equal_gains_are_not_certain(gains):
    low, high = verdict(gains).interval
    assert high - low > 1.5
    assert not verdict(gains).significant


SOME = st.sampled_from([-1.0, -0.5, 0.0, 0.1, 1 / 3, 0.5, 1.0])


@settings(max_examples=300)
@given(SOME, st.integers(0, 64), st.lists(SOME, max_size=3), st.sampled_from([0.0, 1e-16, -1e-12]))
def test_no_verdict_has_an_empty_interval(gain, count, others, rounding):
    gains = [gain + rounding * n for n in range(count)] + others
    found = verdict(gains)
    low, high = found.interval
    assert low <= found.difference <= high
    assert high - low > 0.005


@pytest.mark.parametrize("gain", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("pairs", [8, 16, 64])
def test_the_interval_holds_the_gain_about_as_often_as_it_says(gain, pairs):
    """Pairs of independent outcomes, 4,000 verdicts each; of few such values t is approximate, .929 at worst here."""
    draws = np.random.default_rng([3, pairs])
    ours, theirs = (draws.random((4000, pairs)) < rate for rate in ((1 + gain) / 2, (1 - gain) / 2))
    gains = ours.astype(float) - theirs
    held = [low <= gain + 1e-9 and gain - 1e-9 <= high for low, high in (verdict(list(row)).interval for row in gains)]
    assert np.mean(held) >= 0.92


def rate(groups):
    return Rate(float(np.mean(groups)), float(np.std(groups, ddof=1) / len(groups) ** 0.5), len(groups))


def test_the_chance_of_a_fall_is_that_of_welch_with_one_task_more():
    """By hand: variances 1/12 of three tasks each, and 0.25 of one more; degrees of freedom as Welch has them."""
    before, after = rate([1.0, 1.0, 0.5]), rate([0.0, 0.5, 0.0])
    part = (2 * (1 / 12) + 0.25) / 9
    freedom = (2 * part) ** 2 / (2 * part**2 / 2)
    scaled = -(5 / 6 - 1 / 6) / (2 * part) ** 0.5
    assert chance_of_fall(before, after) == pytest.approx(float(student_t.cdf(scaled, freedom)))
    assert chance_of_fall(after, before) == pytest.approx(1 - chance_of_fall(before, after))
    assert chance_of_fall(rate([1.0, 1.0]), rate([1.0, 1.0])) == 1.0


@pytest.mark.parametrize(("tasks", "group"), [(3, 1), (4, 4), (8, 1), (16, 8)])
@pytest.mark.parametrize("spread", [0.05, 0.8])
def test_success_that_did_not_change_hardly_ever_falls_beyond_noise(tasks, group, spread):
    """4,000 pairs of batches of one rate, with tasks that resemble each other or do not."""
    draws, most = np.random.default_rng(20261128), 0
    for level in (0.1, 0.5, 0.9):
        sizes = level * (1 - spread) / spread, (1 - level) * (1 - spread) / spread
        rates = draws.binomial(group, draws.beta(*sizes, size=(2, 1334, tasks))) / group
        chances = [chance_of_fall(rate(old), rate(new)) for old, new in zip(*rates, strict=True)]
        most = max(most, sum(chance < 0.01 for chance in chances))
    assert most <= 30  # 13 are expected at the nominal level; three tasks are a little worse


def test_the_chance_of_losses_is_the_sign_test():
    before, after = "1111100-10" * 2, "0001101000" * 2
    assert chance_of_losses(before, after) == pytest.approx(binomtest(8, 10, alternative="greater").pvalue)
    assert chance_of_losses("1-", "-0") == 1.0
    assert chance_of_losses(after, before) == pytest.approx(binomtest(2, 10, alternative="greater").pvalue)
