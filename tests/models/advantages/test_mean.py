"""Dr. GRPO: the mean off, nothing divided."""

import pytest
from support.trajectories import group, trajectory

from coevo.configs.update.advantage_config import MeanConfig
from coevo.models.advantages import estimate


def test_two_of_four_succeed():
    assert estimate(group([1, 0, 0, 1]), MeanConfig(type="mean")).episodes.tolist() == [0.5, -0.5, -0.5, 0.5]


def test_a_long_episode_does_not_weigh_more():
    rows = [trajectory(1.0, lengths=(1,)), trajectory(0.0, lengths=(1, 1, 1))]
    made = estimate(rows, MeanConfig(type="mean"))
    assert made.episodes.tolist() == pytest.approx([0.5, -0.5])  # by turns it would be .75 and -.25
    assert made.tokens[1].tolist() == [-0.5] * 3
