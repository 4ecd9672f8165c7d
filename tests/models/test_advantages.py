"""GRPO advantages against values worked out by hand, and what must not change them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.update import GrpoConfig
from models.advantages import estimate, zero_variance

GROUPED = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.0, 0.5, 1.0, -0.3])), min_size=1, max_size=24)


def advantages(returns, groups, **settings):
    return estimate(np.array(returns, dtype=float), groups, GrpoConfig(**settings))


@pytest.mark.parametrize(("ddof", "expected"), [(1, 0.866024), (0, 0.999998)])
def test_two_of_four_succeed(ddof, expected):
    worked = advantages([1, 0, 0, 1], ["t"] * 4, ddof=ddof)
    np.testing.assert_allclose(worked, [expected, -expected, -expected, expected], atol=5e-7)


def test_groups_of_other_sizes_and_interleaved():
    # a: 2, 0 -> mean 1, std sqrt(2); b: 3, 0, 0 -> mean 1, std sqrt(3)
    worked = advantages([2, 3, 0, 0, 0], ["a", "b", "a", "b", "b"])
    np.testing.assert_allclose(worked, [0.7071063, 1.1547, -0.7071063, -0.57735, -0.57735], atol=1e-6)


def test_nothing_to_compare_is_zero():
    returns, groups = [1.0, 0.5, 0.5, 1.0, 0.0], ["alone", "flat", "flat", "differ", "differ"]
    assert advantages(returns, groups)[:3].tolist() == [0.0, 0.0, 0.0]
    assert zero_variance(np.array(returns), groups).tolist() == [True, True, True, False, False]


def test_rounding_is_not_variance():
    returns = [0.1 + 0.2, 0.3, 0.3]
    assert len(set(returns)) == 2
    assert advantages(returns, ["t"] * 3).tolist() == [0.0] * 3


def test_no_episodes():
    assert advantages([], []).shape == (0,)


@given(GROUPED, st.randoms(use_true_random=False))
def test_order_does_not_matter(episodes, random):
    groups, returns = [group for group, _ in episodes], [value for _, value in episodes]
    order = list(range(len(episodes)))
    random.shuffle(order)
    shuffled = advantages([returns[i] for i in order], [groups[i] for i in order])
    np.testing.assert_allclose(shuffled, advantages(returns, groups)[order], atol=1e-9)


@given(GROUPED)
def test_every_group_has_mean_zero_and_flat_ones_are_zero(episodes):
    groups, returns = np.array([group for group, _ in episodes]), np.array([value for _, value in episodes])
    worked, flat = advantages(returns, groups.tolist()), zero_variance(returns, groups.tolist())
    for group in set(groups):
        members = groups == group
        assert abs(worked[members].mean()) < 1e-9
        assert flat[members].all() == (len(set(returns[members])) == 1)
        assert (worked[members] == 0).all() or not flat[members].any()
