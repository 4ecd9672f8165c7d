"""Dual-discounting GAE against worked values, and the critic's targets."""

import numpy as np
import pytest
from hypothesis import given
from support.trajectories import batches, trajectory

from configs.advantage import GaeConfig
from models.advantages import estimate
from models.advantages.gae import Decay, explained_variance, gae, whitened

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


def test_explained_variance():
    returns = np.array([0.0, 1.0, 0.0, 1.0])
    assert explained_variance(returns, returns) == 1.0
    assert explained_variance(np.full(4, 0.5), returns) == 0.0
    assert explained_variance(1 - returns, returns) == -3.0
    assert explained_variance(returns, np.ones(4)) == 0.0


def test_it_is_measured_against_what_followed_not_against_the_critics_own_targets():
    row = trajectory(1.0, lengths=(1, 1), values=np.array([0.2, 0.9]))
    made = estimate([row], GaeConfig(type="gae", gamma_step=0.5, lambda_step=0.0))
    followed = np.array([0.5, 1.0])
    assert made.metrics["critic/explained_variance"] == pytest.approx(explained_variance(row.values, followed))


@given(batches())
def test_whitening_keeps_the_order_of_tokens(rows):
    raw = estimate(rows, GaeConfig(type="gae", whiten=False)).tokens
    white = whitened(raw)
    every, flat = np.concatenate(white), np.concatenate(raw)
    assert abs(every.mean()) < 1e-6
    assert (np.diff(every[np.argsort(flat, kind="stable")]) >= -1e-6).all()
