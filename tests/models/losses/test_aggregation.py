"""Aggregation against values worked out by hand."""

from typing import get_args

import pytest
import torch

from coevo.configs.update.loss import Aggregation
from coevo.models.losses.aggregation import weights_of


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("token-mean", 2.5),  # (1 + 2 + 3 + 4) / 4
        ("seq-mean-token-sum", 5.0),  # (6 + 4) / 2
        ("seq-mean-token-mean", 3.0),  # (2 + 4) / 2
        ("seq-mean-token-sum-norm", 1.25),  # (6 + 4) / 2 / width 4
        ("traj-mean-step-mean", 3.0),  # one step a trajectory
    ],
)
def test_aggregation(aggregation, expected):
    losses = torch.tensor([[1.0, 2.0, 3.0], [4.0, 99.0, 99.0]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    assert float((weights_of(mask, torch.tensor([0, 1]), 4, aggregation) * losses).sum()) == pytest.approx(expected)


@pytest.mark.parametrize("aggregation", get_args(Aggregation))
@pytest.mark.parametrize("copies", [2, 3, 5, 8, 13, 64, 1000])
def test_a_batch_of_copies_has_the_loss_of_one(aggregation, copies):
    losses = torch.tensor([[1.0, 2.0, 3.0], [4.0, 99.0, 99.0], [5.0, 6.0, 99.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, True], [True, False, False], [True, True, False]])
    episodes = torch.tensor([0, 0, 1])
    one = (weights_of(mask, episodes, 4, aggregation) * losses).sum()
    every = torch.cat([episodes + 2 * copy for copy in range(copies)])
    many = (weights_of(mask.repeat(copies, 1), every, 4, aggregation) * losses.repeat(copies, 1)).sum()
    assert float(many) == pytest.approx(float(one), rel=1e-5)


def test_steps_are_averaged_within_their_trajectory_first():
    losses = torch.tensor([[1.0, 1.0], [3.0, 0.0], [10.0, 10.0]])
    mask = torch.tensor([[True, True], [True, False], [True, True]])
    weights = weights_of(mask, torch.tensor([7, 7, 3]), 2, "traj-mean-step-mean")
    assert float((weights * losses).sum()) == pytest.approx(((1 + 3) / 2 + 10) / 2)


@pytest.mark.parametrize("aggregation", get_args(Aggregation))
def test_a_row_without_tokens_is_no_row(aggregation):
    mask = torch.tensor([[True, True], [True, False]])
    padded = torch.cat([mask, torch.zeros(2, 2, dtype=torch.bool)])
    weights = weights_of(mask, torch.tensor([0, 1]), 4, aggregation)
    with_empty = weights_of(padded, torch.tensor([0, 1, 1, 2]), 4, aggregation)
    assert torch.equal(with_empty[:2], weights)
    assert not with_empty[2:].any()


@pytest.mark.parametrize("aggregation", get_args(Aggregation))
def test_a_single_token_has_all_the_weight_and_no_token_none(aggregation):
    one = torch.tensor([[True]])
    assert weights_of(one, torch.tensor([0]), 1, aggregation).tolist() == [[1.0]]
    assert weights_of(~one, torch.tensor([0]), 1, aggregation).tolist() == [[0.0]]
    assert weights_of(one[:0], torch.tensor([], dtype=torch.long), 1, aggregation).tolist() == []
