"""Differences by rounding are no variance, in any estimator, and differences that are more remain one."""

from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.trajectories import group, trajectory

from coevo.configs.update.advantage_config import (
    GaeConfig,
    GigpoConfig,
    GrpoConfig,
    MeanConfig,
    ReinforceConfig,
    RlooConfig,
)
from coevo.models.advantages import estimate
from coevo.models.advantages.gae import explained_variance, whitened
from coevo.models.advantages.trajectory import centred, normalised, varies, zero_variance

CONFIGS = [
    GrpoConfig(),
    GrpoConfig(ddof=0, epsilon=1e-12),
    MeanConfig(type="mean"),
    RlooConfig(type="rloo"),
    ReinforceConfig(type="reinforce"),
    GigpoConfig(type="gigpo", gamma=1.0),
    GigpoConfig(type="gigpo", gamma=1.0, mode="mean_std_norm"),
    GaeConfig(type="gae", gamma_step=1.0, lambda_step=1.0),
]
each = pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.type)
UNIT = {np.float16: 100, np.float32: 1e7, np.float64: 1e7}
"""Largest reward that a generated turn has, by precision."""


def near(value, dtype):
    """The value and the one above it in this precision, alternating."""
    return [dtype(value), np.nextafter(dtype(value), dtype(np.inf))] * 4


@st.composite
def reordered(draw):
    """Episodes with the same rewards in another order, summed in one precision; the critic knows the sum."""
    dtype = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    parts = draw(st.lists(st.floats(1e-3, UNIT[dtype]).map(dtype), min_size=1, max_size=4))
    orders = [draw(st.permutations(parts)) for _ in range(draw(st.integers(2, 8)))]
    return [_summed(order, dtype) for order in orders]


def _summed(parts, dtype):
    total = dtype(0)
    for part in parts:
        total = dtype(total + part)
    last = np.zeros(len(parts), dtype=dtype)
    last[-1] = total
    values = np.full(len(parts), total)
    return trajectory(total, lengths=(1,) * len(parts), rewards=last, values=values)


@each
@settings(max_examples=200)
@given(rows=reordered())
def test_rewards_in_another_order_are_equal(config, rows):
    made = estimate(rows, config)
    assert all(not values.any() for values in made.tokens)
    assert not made.episodes.any()
    if config.grouped:
        assert not made.used.any()


@each
@pytest.mark.parametrize(
    ("value", "dtype"),
    [(100, np.float16), (0.3, np.float16), (100.1, np.float32), (-100.1, np.float32), (1e7, np.float32), (0.3, float)],
)
def test_neighbours_in_a_precision_are_equal(config, value, dtype):
    rows = [trajectory(each, values=np.full(2, each)) for each in near(value, dtype)]
    assert all(not values.any() for values in estimate(rows, config).tokens)


@each
def test_a_millionth_of_the_largest_reward_is_rounding(config):
    rows = [trajectory(value, values=np.full(2, 1e7)) for value in [1e7, 1e7 + 1e-3] * 4]
    assert all(not values.any() for values in estimate(rows, config).tokens)


@settings(max_examples=300)
@given(
    base=st.floats(-1e7, 1e7),
    steps=st.lists(st.integers(0, 100), min_size=2, max_size=8).filter(lambda steps: len(set(steps)) > 1),
    share=st.floats(1e-5, 1.0),
)
def test_larger_differences_are_variance(base, steps, share):
    """Against the textbook: mean and standard deviation of the Python library."""
    values = [base + step * share * max(abs(base), 1e-3) for step in steps]
    mean, spread = fmean(values), stdev(values)
    np.testing.assert_allclose(
        estimate(group(values), GrpoConfig()).episodes,
        [(value - mean) / (spread + 1e-6) for value in values],
        rtol=1e-3,
        atol=1e-6,
    )
    gains = estimate(group(values), MeanConfig(type="mean")).episodes
    np.testing.assert_allclose(gains, [value - mean for value in values], rtol=1e-3, atol=1e-6)
    assert not zero_variance(np.array(values), [0] * len(values)).any()


def test_a_step_is_judged_by_the_rewards_that_it_sums():
    """Step returns of about 0 are what rounding leaves of rewards of 100."""
    rows = [trajectory(value, rewards=np.array([-100.1, value]), lengths=(1, 1)) for value in near(100.1, np.float32)]
    made = estimate(rows, GigpoConfig(type="gigpo", gamma=1.0, mode="mean_std_norm"))
    assert all(not values.any() for values in made.tokens)
    assert made.metrics["policy/advantage/step_alone_share"] == 1.0


def test_values_of_a_good_critic_are_not_blown_up_by_whitening():
    """Advantages are differences of rewards and values: the rounding of these is what is left of them."""
    rows = [trajectory(100.1, lengths=(2,), values=np.array(near(100.1, np.float32)[:2])) for _ in range(3)]
    config = GaeConfig(type="gae", gamma_step=1.0, lambda_step=1.0)
    assert all(not values.any() for values in estimate(rows, config).tokens)
    assert whitened([np.array([0.3, 0.1 + 0.2]), np.array([0.3])])[0].tolist() == [0.0, 0.0]
    assert explained_variance(np.array([0.0, 1.0]), np.array([0.1 + 0.2, 0.3])) == 0.0


def test_small_rewards_are_not_rounding():
    assert estimate(group([0.0, 1e-12]), MeanConfig(type="mean")).episodes.tolist() == [-5e-13, 5e-13]
    assert varies(np.array([0.0, 1e-300]))
    assert not varies(np.array([]))
    assert not varies(np.array([3.0]))


def test_groups_have_their_own_scale():
    values, groups = np.array([1e7, 1e7 + 1.0, 0.0, 1.0]), ["large", "large", "small", "small"]
    assert centred(values, groups).tolist() == [0.0, 0.0, -0.5, 0.5]
    assert normalised(values, groups, 0, 0.5).tolist() == [0.0, 0.0, -0.5, 0.5]
    assert zero_variance(values, groups).tolist() == [True, True, False, False]
