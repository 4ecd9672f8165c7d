"""The lower bound of a gain: worked values, few pairs, and how often chance passes."""

from math import comb, inf

import pytest
from scipy.stats import t, ttest_1samp

from coevo.configs.bank.admission import ReplayAdmissionConfig
from coevo.memory.admission.confidence import lower_bound
from coevo.memory.admission.replay import judge

RECIPE = "homerules-coevo-rl"


def verdict(gains, confidence=0.95, delta=0.0):
    config = ReplayAdmissionConfig(confidence=confidence, delta=delta, replays=1000)
    return judge((), gains, [0.0] * len(gains), config, 1)


def test_worked_values():
    # Three gains of eight: mean 3/8, variance 15/56, standard error sqrt(15/56/8), and t(7) at 0.95 is 1.894579.
    gains = [1, 1, 1, 0, 0, 0, 0, 0]
    assert lower_bound(verdict(gains), 0.95) == pytest.approx(3 / 8 - 1.894579 * (15 / 56 / 8) ** 0.5, abs=1e-6)
    assert verdict(gains).admitted
    # Two of eight: mean 1/4, variance 3/14.
    two = verdict([1, 1, 0, 0, 0, 0, 0, 0])
    assert lower_bound(two, 0.95) == pytest.approx(1 / 4 - 1.894579 * (3 / 14 / 8) ** 0.5, abs=1e-6)
    assert not two.admitted


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_it_is_the_one_sided_interval_of_a_paired_t_test(confidence):
    gains = [0.5, -0.25, 1.0, 0.75, 0.0, 0.125, 0.5, 0.25]
    expected = ttest_1samp(gains, 0.0, alternative="greater").confidence_interval(confidence).low
    assert lower_bound(verdict(gains, confidence), confidence) == pytest.approx(expected)
    assert verdict(gains, confidence).admitted == (expected > 0)


@pytest.mark.parametrize("gain", [1.0, 0.5])
def test_a_single_pair_and_few_equal_ones_show_nothing(gain):
    # 2^-4 > 0.05 >= 2^-5.
    for pairs in range(1, 5):
        assert lower_bound(verdict([gain] * pairs), 0.95) == -inf
        assert not verdict([gain] * pairs).admitted
    assert lower_bound(verdict([gain] * 5), 0.95) == gain
    assert verdict([gain] * 5).admitted
    assert not verdict([0.0] * 100).admitted


def test_one_miss_more_never_lets_a_candidate_in():
    for pairs in range(1, 40):
        admitted = [verdict([1] * wins + [0] * (pairs - wins)).admitted for wins in range(pairs + 1)]
        assert admitted == sorted(admitted)


def test_the_bound_must_exceed_delta():
    assert not verdict([0.5] * 8, delta=0.5).admitted
    assert verdict([0.5] * 8, delta=0.49).admitted
    assert verdict([0.0] * 8, delta=-0.1).admitted


def chance(pairs, differing, confidence):
    """How often a candidate without any effect passes, where so large a share of pairs differs: all outcomes added."""
    found = 0.0
    for won in range(pairs + 1):
        for lost in range(pairs + 1 - won):
            same = pairs - won - lost
            if verdict([1] * won + [-1] * lost + [0] * same, confidence).admitted:
                ways = comb(pairs, won) * comb(pairs - won, lost)
                found += ways * (differing / 2) ** (won + lost) * (1 - differing) ** same
    return found


@pytest.mark.parametrize(("confidence", "most"), [(0.95, 0.0561), (0.99, 0.0353)])
def test_chance_passes_about_as_often_as_the_level_says(confidence, most):
    found = [chance(8, share / 20, confidence) for share in range(1, 21)]
    assert max(found) == pytest.approx(most, abs=5e-4)


def test_the_worst_case_of_the_docstring():
    assert chance(9, 1.0, 0.95) == pytest.approx(46 / 512)


def test_the_normal_quantile_is_the_limit():
    assert lower_bound(verdict([1.0, 0.0] * 5000), 0.95) == pytest.approx(0.5 - 1.6449 * 0.5 / 100, abs=1e-4)
    assert t.ppf(0.95, 9999) == pytest.approx(1.645, abs=1e-3)
