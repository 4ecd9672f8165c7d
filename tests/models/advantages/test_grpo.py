"""GRPO advantages against values worked out by hand, and what must not change them."""

import numpy as np
import pytest
from hypothesis import given
from support.trajectories import batches, trajectory

from coevo.configs.update.advantage_config import GrpoConfig
from coevo.models.advantages import estimate
from coevo.models.advantages.trajectory import zero_variance


def advantages(returns, groups, **settings):
    rows = [trajectory(value, name) for value, name in zip(returns, groups, strict=True)]
    return estimate(rows, GrpoConfig(**settings)).episodes


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


def test_every_token_has_its_episodes_advantage():
    made = estimate([trajectory(1.0, lengths=(2, 3)), trajectory(0.0, lengths=(1,))], GrpoConfig())
    assert [len(values) for values in made.tokens] == [5, 1]
    assert all((values == whole).all() for values, whole in zip(made.tokens, made.episodes, strict=True))


@given(batches())
def test_every_group_has_mean_zero_and_flat_ones_are_zero(rows):
    groups, returns = np.array([row.group for row in rows]), np.array([row.value for row in rows])
    worked, flat = estimate(rows, GrpoConfig()).episodes, zero_variance(returns, groups.tolist())
    for name in set(groups):
        members = groups == name
        assert abs(worked[members].mean()) < 1e-9
        assert flat[members].all() == (len(set(returns[members])) == 1)
        assert (worked[members] == 0).all() or not flat[members].any()
