"""Dual-discounting GAE against worked values, and the critic's targets."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.trajectories import REWARDS, batches, trajectory

from coevo.configs.update.advantage_config import GaeConfig
from coevo.models.advantages import estimate
from coevo.models.advantages.gae import Decay, explained_variance, gae, token_rewards, whitened

DUAL = Decay(0.99, 0.95, 1.0, 1.0)
SINGLE = Decay(1.0, 1.0, 1.0, 1.0)
VALUES = np.array([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize(
    ("rewards", "bootstrap", "expected"),
    [((0, 0, 0, 1), 0.0, (0.85535, 0.75535, 0.7, 0.6)), ((0, 0, 0, 0), 0.6, (0.473507, 0.373507, 0.294, 0.194))],
)
def test_worked_values(rewards, bootstrap, expected):
    worked = gae(np.array(rewards, dtype=float), VALUES, (2, 2), bootstrap, DUAL)
    np.testing.assert_allclose(worked, expected, atol=5e-7)


def test_one_discount_for_all_is_the_return_less_the_value():
    worked = gae(np.array([0.0, 0.5, 0.0, 1.0]), VALUES, (1, 3), 0.25, SINGLE)
    np.testing.assert_allclose(worked, [1.75 - 0.1, 1.75 - 0.2, 1.25 - 0.3, 1.25 - 0.4])


def test_where_turns_end_matters():
    rewards = np.array([0.0, 0.0, 0.0, 1.0])
    assert not np.allclose(gae(rewards, VALUES, (2, 2), 0.0, DUAL), gae(rewards, VALUES, (1, 3), 0.0, DUAL))


def test_the_critic_is_told_advantage_plus_value_before_whitening():
    row = trajectory(1.0, lengths=(2, 2), values=VALUES, rewards=np.array([0.0, 1.0]))
    raw, white = (estimate([row], GaeConfig(type="gae", whiten=whiten)) for whiten in (False, True))
    np.testing.assert_allclose(raw.tokens[0], [0.85535, 0.75535, 0.7, 0.6])
    np.testing.assert_allclose(raw.returns[0], raw.tokens[0] + VALUES)
    np.testing.assert_array_equal(white.returns[0], raw.returns[0])
    assert white.tokens[0].mean() == pytest.approx(0.0)
    assert white.tokens[0].std(ddof=1) == pytest.approx(1.0)
    assert raw.used.all()


def test_kl_penalties_are_paid_token_by_token():
    plain = trajectory(1.0, lengths=(2,), values=np.zeros(2))
    taxed = trajectory(1.0, lengths=(2,), values=np.zeros(2), penalties=np.array([0.1, 0.2]))
    config = GaeConfig(type="gae", whiten=False)
    worked = estimate([plain], config).tokens[0] - estimate([taxed], config).tokens[0]
    np.testing.assert_allclose(worked, [0.3, 0.2])
    assert taxed.total == pytest.approx(0.7)
    np.testing.assert_allclose(taxed.per_turn(), [0.7])
    longer = trajectory(1.0, lengths=(2, 1, 2), penalties=np.array([0.1, 0.2, 0.4, 0.05, 0.15]))
    np.testing.assert_allclose(longer.per_turn(), [-0.3, -0.4, 0.8])
    np.testing.assert_allclose(token_rewards(longer), [-0.1, -0.2, -0.4, -0.05, 0.85])
    assert longer.total == pytest.approx(0.1)
    bare = trajectory(1.0, lengths=(2, 1))
    assert (bare.total, bare.bootstrap, bare.values.size, bare.penalties.size) == (1.0, 0.0, 0, 0)
    assert token_rewards(bare).tolist() == [0.0, 0.0, 1.0]


def test_explained_variance():
    returns = np.array([0.0, 1.0, 0.0, 1.0])
    assert explained_variance(returns, returns) == 1.0
    assert explained_variance(np.full(4, 0.5), returns) == 0.0
    assert explained_variance(1 - returns, returns) == -3.0
    assert explained_variance(returns, np.ones(4)) == 0.0


def test_values_are_judged_by_the_critics_targets_and_by_what_followed():
    row = trajectory(1.0, lengths=(1, 1), values=np.array([0.2, 0.9]))
    made = estimate([row], GaeConfig(type="gae", gamma_step=0.5, lambda_step=0.0))
    # Targets .5 x .9 = .45 and 1: variance .075625, of the errors .25 and .1 it is .005625.
    assert made.metrics["policy/critic/explained_variance"] == pytest.approx(1 - 0.005625 / 0.075625)
    # What followed, .5 x 1 = .5 and 1: variance .0625, of the errors .3 and .1 it is .01.
    assert made.metrics["policy/critic/forecast_variance"] == pytest.approx(0.84)


def test_whitening_divides_by_the_deviation_of_all_tokens():
    # 0, 1 and 2: mean 1, deviation 1; two tokens 0 and 1: deviation sqrt(1/2).
    np.testing.assert_allclose(np.concatenate(whitened([np.array([0.0, 2.0]), np.array([1.0])])), [-1.0, 1.0, 0.0])
    np.testing.assert_allclose(whitened([np.array([0.0, 1.0])])[0], [-(0.5**0.5), 0.5**0.5])
    assert whitened([np.array([3.0])])[0].tolist() == [0.0]
    assert whitened([]) == []


def test_whitening_does_not_change_how_values_are_judged():
    rows = [trajectory(value, lengths=(1, 2), values=np.array([0.2, 0.9, value])) for value in (0.0, 1.0)]
    raw, white = (estimate(rows, GaeConfig(type="gae", whiten=whiten)).metrics for whiten in (False, True))
    assert raw == white


def test_a_cut_episode_is_worth_what_is_expected_of_the_rest():
    row = trajectory(0.0, lengths=(2, 2), values=VALUES, bootstrap=0.6)
    raw = estimate([row], GaeConfig(type="gae", whiten=False))
    np.testing.assert_allclose(raw.tokens[0], [0.473507, 0.373507, 0.294, 0.194], atol=5e-7)
    np.testing.assert_allclose(raw.returns[0], [0.573507, 0.573507, 0.594, 0.594], atol=5e-7)
    # .99 x .6 = .594 follows each token of the last turn, .99 x .594 = .58806 those of the turn before.
    followed = np.array([0.58806, 0.58806, 0.594, 0.594])
    assert raw.metrics["policy/critic/forecast_variance"] == pytest.approx(explained_variance(VALUES, followed))


@given(rewards=st.lists(REWARDS, min_size=2, max_size=5), data=st.data())
def test_a_cut_changes_nothing_where_the_value_beyond_it_holds_all_that_follows(rewards, data):
    """delta + gamma lambda A is the same as a delta with the value V + lambda A in the place of V."""
    lengths = tuple(data.draw(st.integers(1, 3)) for _ in rewards)
    values = np.array([data.draw(REWARDS) for _ in range(sum(lengths))])
    cut = data.draw(st.integers(1, len(rewards) - 1))
    here = sum(lengths[:cut])
    row = trajectory(sum(rewards), lengths=lengths, values=values, rewards=np.array(rewards))
    whole = gae(token_rewards(row), values, lengths, 0.0, DUAL)
    beyond = values[here] + DUAL.lambda_step * whole[here]
    part = trajectory(0.0, lengths=lengths[:cut], values=values[:here], rewards=np.array(rewards[:cut]))
    first = gae(token_rewards(part), part.values, part.lengths, beyond, DUAL)
    np.testing.assert_allclose(first, whole[:here], atol=1e-12)


@given(data=st.data())
def test_parts_of_other_episodes_change_nothing_before_whitening(data):
    rows = data.draw(batches())
    cut = [replace(row, bootstrap=data.draw(REWARDS)) for row in rows]
    config = GaeConfig(type="gae", whiten=False)
    together = estimate(cut, config).tokens
    alone = [estimate([row], config).tokens[0] for row in cut]
    assert all(np.array_equal(one, other) for one, other in zip(together, alone, strict=True))


@given(batches())
def test_whitening_keeps_the_order_of_tokens(rows):
    raw = estimate(rows, GaeConfig(type="gae", whiten=False)).tokens
    white = whitened(raw)
    every, flat = np.concatenate(white), np.concatenate(raw)
    assert abs(every.mean()) < 1e-6
    assert (np.diff(every[np.argsort(flat, kind="stable")]) >= -1e-6).all()
