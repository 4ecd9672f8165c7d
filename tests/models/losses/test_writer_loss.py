"""REINFORCE on answers, against values worked out by hand."""

import math
from dataclasses import replace

import pytest
import torch

from coevo.configs.update.update_config import WriterUpdateConfig
from coevo.models.losses.aggregation import weights_of
from coevo.models.losses.policy_loss import Completions
from coevo.models.losses.writer_loss import REINFORCE, advantages, clipped
from coevo.records.writing import Credit, Drawn, Rewarded


def answers(*pairs):
    return [Rewarded(Drawn((1,), (2, 3)), (Credit(0, 2, reward),), weight) for reward, weight in pairs]


@pytest.mark.parametrize(
    ("baseline", "scale", "expected"),
    [("none", 1.0, [1.0, 0.0, 0.0, 1.0]), ("none", 10.0, [10.0, 0.0, 0.0, 10.0]), ("batch", 10.0, [5.0, -5, -5, 5])],
)
def test_an_advantage_is_the_scaled_reward_minus_the_mean(baseline, scale, expected):
    config = WriterUpdateConfig(baseline=baseline, scale=scale)
    found = advantages(answers((1, 1.0), (0, 1.0), (0, 1.0), (1, 1.0)), config)
    assert found == [pytest.approx([gain, gain]) for gain in expected]


def test_weights_count_in_the_mean_and_in_the_advantage():
    # One success with weight 2, three failures with 2/3: the mean of the rewards 0, 1, 1, 0 is (2/3 + 2/3) / 4 = 1/3.
    found = advantages(answers((0, 2.0), (1, 2 / 3), (1, 2 / 3), (0, 2 / 3)), WriterUpdateConfig())
    assert [gain for gain, _ in found] == pytest.approx([-2 / 3, 4 / 9, 4 / 9, -2 / 9])


def test_each_part_has_its_own_advantage_and_other_tokens_none():
    parts = (Credit(1, 3, 0.5), Credit(3, 4, -0.25))
    whole = [Rewarded(Drawn((1,), (5, 6, 7, 8, 9)), parts), Rewarded(Drawn((1,), (5,)), (Credit(0, 1, 0.0),))]
    # The mean of 1/2, -1/4 and 0 is 1/12.
    first, second = advantages(whole, WriterUpdateConfig())
    assert first == pytest.approx([0.0, 5 / 12, 5 / 12, -1 / 3, 0.0])
    assert second == pytest.approx([-1 / 12])


@pytest.mark.parametrize(("baseline", "expected"), [("none", (1.0, -0.5)), ("batch", (0.75, -0.75))])
def test_a_gain_counts_over_silence_or_over_the_other_lessons(baseline, expected):
    config = WriterUpdateConfig(reward="replay", scale=2.0, baseline=baseline)
    found = advantages(answers((0.5, 1.0), (-0.25, 1.0)), config)
    assert found == [pytest.approx([gain, gain]) for gain in expected]
    assert advantages([], WriterUpdateConfig()) == []


@pytest.mark.parametrize("reward", [0.1 + 0.2, 100.1, 1e7 + 0.1])
def test_rewards_that_differ_by_rounding_have_no_advantage(reward):
    near = [(math.nextafter(reward, math.inf), 0.3), (reward, 0.7), (reward, 1.1)]
    assert advantages(answers(*near), WriterUpdateConfig(scale=1e6)) == [[0.0, 0.0]] * 3
    assert advantages(answers(*near), WriterUpdateConfig(baseline="none"))[1] == [0.7 * reward] * 2


def batch_of(old):
    """Two answers of three tokens and of one, with advantages of 3/4 and -1/4."""
    logprobs = torch.tensor([[-0.5, -1.0, -0.25], [-2.0, -9.0, -9.0]], requires_grad=True)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    gains = torch.tensor([[0.75] * 3, [-0.25, 0.0, 0.0]])
    weights = weights_of(mask, torch.tensor([0, 1]), 3, REINFORCE.config.aggregation)
    old = logprobs.detach() + torch.tensor(old)
    return logprobs, Completions(logprobs, old, old, old, torch.zeros(2, 3), gains, mask, weights)


def test_the_loss_is_the_mean_over_answers_of_advantage_times_log_likelihood():
    logprobs, batch = batch_of([[0.0] * 3] * 2)
    loss = REINFORCE.of(batch).loss
    # -(0.75 * -1.75 + -0.25 * -2) / 2
    assert loss.item() == pytest.approx((0.75 * 1.75 - 0.5) / 2)
    loss.backward()
    expected = torch.tensor([[-0.375] * 3, [0.125, 0.0, 0.0]])
    torch.testing.assert_close(logprobs.grad, expected)


def test_the_clipped_loss_has_its_gradient_where_no_ratio_has_moved():
    (one, plain), (other, bounded) = batch_of([[0.0] * 3] * 2), batch_of([[0.0] * 3] * 2)
    REINFORCE.of(plain).loss.backward()
    clipped(0.2, 0.5).of(bounded).loss.backward()  # the reference is the old policy, from which nothing has moved
    torch.testing.assert_close(other.grad, one.grad)


def test_a_step_moves_no_token_whose_ratio_has_left_the_interval_in_its_direction():
    # Ratios of exp(.3), exp(-.3) and 1 with a positive advantage, of exp(-.3) with a negative one.
    logprobs, batch = batch_of([[-0.3, 0.3, 0.0], [0.3, 0.0, 0.0]])
    clipped(0.2, 0.0).of(batch).loss.backward()
    expected = [[0.0, -0.375 * math.exp(-0.3), -0.375], [0.0, 0.0, 0.0]]
    torch.testing.assert_close(logprobs.grad, torch.tensor(expected))


def test_the_kl_pulls_towards_the_reference():
    logprobs, batch = batch_of([[-0.3, 0.3, 0.0], [0.0, 0.0, 0.0]])
    loss = clipped(0.9, 2.0).of(replace(batch, advantages=torch.zeros(2, 3))).loss
    # k3 of log-ratios -.3 and .3, summed over the first answer, times 2, and the mean over two answers.
    assert loss.item() == pytest.approx(math.exp(-0.3) + 0.3 - 1 + math.exp(0.3) - 0.3 - 1)
    loss.backward()
    assert logprobs.grad[0].tolist() == pytest.approx([1 - math.exp(-0.3), 1 - math.exp(0.3), 0.0], abs=1e-6)
