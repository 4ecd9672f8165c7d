"""Engine against trainer, by hand."""

import math

import pytest
import torch

from coevo.models.losses.policy_loss import importance, mismatch


def test_mismatch():
    worked = mismatch(torch.tensor([math.log(2.0), math.log(0.5)]))
    assert worked["mismatch_mean"] == worked["mismatch_max"] == pytest.approx(math.log(2.0))
    assert worked["mismatch_p99"] == pytest.approx(math.log(2.0))
    assert worked["mismatch_k3"] == pytest.approx((2 + 0.5) / 2 - 1)
    assert worked["mismatch_ess"] == pytest.approx(2.5**2 / (4 + 0.25) / 2)
    assert worked["mismatch_tokens"] == 2
    assert mismatch(torch.zeros(3))["mismatch_ess"] == pytest.approx(1.0)
    far = mismatch(torch.tensor([90.0, -90.0]))  # as if by 20: one of two weights counts
    assert (far["mismatch_max"], far["mismatch_ess"]) == (90.0, pytest.approx(0.5))
    assert mismatch(torch.zeros(0)) == worked | dict.fromkeys(worked, 0.0) | {"mismatch_ess": 1.0}


def test_the_tail_is_what_one_token_in_a_hundred_exceeds():
    assert mismatch(torch.arange(1, 201) / 100)["mismatch_p99"] == pytest.approx(1.98)
    assert mismatch(-torch.arange(1, 201) / 100)["mismatch_p99"] == pytest.approx(1.98)
    assert mismatch(torch.tensor([*[0.0] * 98, 7.0, 7.0]))["mismatch_p99"] == 7.0
    assert mismatch(torch.tensor([*[0.0] * 99, 7.0]))["mismatch_p99"] == 0.0


def test_importance_weights_are_truncated_and_carry_no_gradient():
    gap = torch.tensor([math.log(0.5), 0.0, math.log(3.0), 90.0], requires_grad=True)
    weights = importance(gap, 2.0)
    assert weights.tolist() == pytest.approx([0.5, 1.0, 2.0, 2.0])
    assert not weights.requires_grad
    assert importance(torch.tensor(-90.0), 2.0).item() == pytest.approx(math.exp(-20))
