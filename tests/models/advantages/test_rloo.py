"""RLOO: each against the mean of the others."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.trajectories import REWARDS, group

from coevo.configs.update.advantage_config import RlooConfig
from coevo.models.advantages import estimate

RLOO = RlooConfig(type="rloo")


def test_two_of_four_succeed():
    np.testing.assert_allclose(estimate(group([1, 0, 0, 1]), RLOO).episodes, [2 / 3, -2 / 3, -2 / 3, 2 / 3])


def test_one_alone_is_zero():
    assert estimate(group([1.0]), RLOO).episodes.tolist() == [0.0]


@given(st.lists(REWARDS, min_size=2, max_size=8))
def test_it_is_the_mean_of_the_others(returns):
    worked = estimate(group(returns), RLOO).episodes
    for index, value in enumerate(returns):
        others = returns[:index] + returns[index + 1 :]
        np.testing.assert_allclose(worked[index], value - sum(others) / len(others), atol=1e-12)
