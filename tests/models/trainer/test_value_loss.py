"""The critic's loss against values worked out by hand."""

import pytest
import torch

from coevo.models.trainer.training_session import value_loss


@pytest.mark.parametrize(
    ("value", "clip", "expected"),
    [
        (0.6, None, 0.08),  # (0.6 - 1)^2 / 2
        (0.6, 0.5, 0.08),  # within the clip
        (0.6, 0.2, 0.18),  # kept at 0.4: the greater error counts
        (-0.6, 0.2, 1.28),  # kept at 0, but the free error is greater
    ],
)
def test_the_greater_error_counts(value, clip, expected):
    worked = value_loss(torch.tensor([value]), torch.tensor([0.2]), torch.tensor([1.0]), clip)
    assert worked.item() == pytest.approx(expected)


def test_a_value_that_has_moved_far_enough_has_no_gradient():
    value = torch.tensor([0.6], requires_grad=True)
    value_loss(value, torch.tensor([0.2]), torch.tensor([1.0]), 0.2).sum().backward()
    assert value.grad.item() == 0.0
