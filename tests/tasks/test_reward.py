"""Shaping, advantages and what is reported of them, by hand."""

import numpy as np
import pytest
from support.batches import episode, turn

from configs.update import UpdateConfig
from tasks.advantage import advantage_metrics
from tasks.rollout import outcome_metrics
from tasks.shape import shape


def test_a_turn_that_was_not_understood_costs_the_penalty():
    clumsy = episode(turns=(turn(valid=False), turn(valid=False), turn(reward=1.0)))
    (shaped,) = shape([clumsy], UpdateConfig(invalid_penalty=0.05))
    assert shaped.shaping == pytest.approx(-0.1)
    assert shaped.shaped == pytest.approx(0.9)
    assert shaped.reward == 1.0


def test_a_frozen_policy_is_not_penalised():
    (shaped,) = shape([episode(turns=(turn(valid=False),))], None)
    assert shaped.shaped == 0.0


def test_the_spread_of_advantages():
    metrics = advantage_metrics(np.array([1.0, -1.0, 0.0, 0.0]), np.array([False, False, True, True]))
    assert metrics["advantage/mean"] == 0.0
    assert metrics["advantage/std"] == pytest.approx(0.5**0.5)
    assert (metrics["advantage/min"], metrics["advantage/max"]) == (-1.0, 1.0)
    assert metrics["advantage/zero_variance_share"] == 0.5


def test_the_histogram_counts_everything_once_and_what_lies_beyond_in_the_outer_bins():
    metrics = advantage_metrics(np.array([-9.0, -0.1, 0.0, 0.2, 9.0]), np.zeros(5, dtype=bool))
    bins = {name: value for name, value in metrics.items() if name.startswith("advantage_histogram/")}
    assert sum(bins.values()) == 5
    assert bins["advantage_histogram/from_-3.0"] == 1
    assert bins["advantage_histogram/from_-0.5"] == 1
    assert bins["advantage_histogram/from_0.0"] == 2
    assert bins["advantage_histogram/from_2.5"] == 1


def test_outcomes_of_a_batch():
    played = [episode(replica=0, turns=(turn(valid=False),)), episode(replica=1, turns=(turn(), turn(reward=1.0)))]
    assert outcome_metrics(played, "p") == {
        "success/p": 0.5,
        "reward/p": 0.5,
        "turns/p": 1.5,
        "truncated/p": 0.0,
        "invalid/p": pytest.approx(1 / 3),
    }
