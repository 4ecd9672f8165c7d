"""KL estimates against values worked out by hand."""

import math

import pytest
import torch

from coevo.configs.update.loss import LossConfig
from coevo.models.losses.policy_loss import kl_estimate, kl_penalties


@pytest.mark.parametrize(("kind", "expected"), [("k1", 0.5), ("k2", 0.125), ("k3", math.exp(-0.5) + 0.5 - 1)])
def test_estimators(kind, expected):
    assert float(kl_estimate(torch.tensor(-0.5), kind)) == pytest.approx(expected)
    config = LossConfig(kl=kind, kl_coefficient=0.1, kl_in="reward")
    assert kl_penalties([-1.0, -2.0], [-1.5, -2.0], config).tolist() == pytest.approx([0.1 * expected, 0.0])


def test_the_log_ratio_is_clamped():
    assert float(kl_estimate(torch.tensor(90.0), "k3")) == pytest.approx(math.exp(20) - 21)
    assert float(kl_estimate(torch.tensor(-90.0), "k3")) == pytest.approx(math.exp(-20) + 19)
