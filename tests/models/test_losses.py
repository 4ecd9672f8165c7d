"""The policy loss against values worked out by hand."""

import math
from dataclasses import replace

import pytest
import torch

from configs.update import LossConfig
from models.losses import Completions, averages, kl_estimate, mismatch, policy_loss, weights_of

NO_KL = LossConfig(kl_coefficient=0.0)


def completions(logprobs, behaviour, advantages, *, reference=None, mask=None, config=NO_KL, episodes=None):
    logprobs = torch.tensor(logprobs, dtype=torch.float64, requires_grad=True)
    mask = torch.ones_like(logprobs, dtype=torch.bool) if mask is None else torch.tensor(mask)
    episodes = torch.arange(len(mask)) if episodes is None else torch.tensor(episodes)
    return Completions(
        logprobs=logprobs,
        behaviour=torch.tensor(behaviour, dtype=torch.float64),
        reference=torch.tensor(behaviour if reference is None else reference, dtype=torch.float64),
        entropy=torch.full_like(logprobs, 0.5).detach(),
        advantages=torch.tensor(advantages, dtype=torch.float64),
        mask=mask,
        weights=weights_of(mask, episodes, config.width or mask.shape[1], config.aggregation),
    )


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("token-mean", 2.5),  # (1 + 2 + 3 + 4) / 4
        ("seq-mean-token-sum", 5.0),  # (6 + 4) / 2
        ("seq-mean-token-mean", 3.0),  # (2 + 4) / 2
        ("seq-mean-token-sum-norm", 2.5),  # (6 + 4) / width 4
        ("traj-mean-step-mean", 3.0),  # one step a trajectory
    ],
)
def test_aggregation(aggregation, expected):
    losses = torch.tensor([[1.0, 2.0, 3.0], [4.0, 99.0, 99.0]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    assert float((weights_of(mask, torch.tensor([0, 1]), 4, aggregation) * losses).sum()) == pytest.approx(expected)


def test_steps_are_averaged_within_their_trajectory_first():
    losses = torch.tensor([[1.0, 1.0], [3.0, 0.0], [10.0, 10.0]])
    mask = torch.tensor([[True, True], [True, False], [True, True]])
    weights = weights_of(mask, torch.tensor([7, 7, 3]), 2, "traj-mean-step-mean")
    assert float((weights * losses).sum()) == pytest.approx(((1 + 3) / 2 + 10) / 2)


@pytest.mark.parametrize("aggregation", LossConfig.model_fields["aggregation"].annotation.__args__)
def test_a_row_without_tokens_is_no_row(aggregation):
    mask = torch.tensor([[True, True], [True, False]])
    padded = torch.cat([mask, torch.zeros(2, 2, dtype=torch.bool)])
    weights = weights_of(mask, torch.tensor([0, 1]), 4, aggregation)
    with_empty = weights_of(padded, torch.tensor([0, 1, 1, 2]), 4, aggregation)
    assert torch.equal(with_empty[:2], weights)
    assert not with_empty[2:].any()


@pytest.mark.parametrize(
    ("log_ratio", "advantage", "expected", "clipped"),
    [
        (0.0, 1.0, -1.0, 0),
        (math.log(1.5), 1.0, -1.3, 1),  # gains end at 1 + clip_high
        (math.log(0.5), 1.0, -0.5, 0),  # a falling good action is not clipped
        (math.log(0.5), -1.0, 0.9, 1),  # gains end at 1 - clip_low
        (math.log(1.5), -1.0, 1.5, 0),  # a rising bad action is not clipped
        (50.0, -1.0, math.exp(20), 0),  # the log-ratio is clamped
    ],
)
def test_clipped_surrogate(log_ratio, advantage, expected, clipped):
    config = LossConfig(kl_coefficient=0.0, clip_low=0.1, clip_high=0.3)
    output = policy_loss(completions([[-1.0 + log_ratio]], [[-1.0]], [advantage], config=config), config)
    assert output.loss.item() == pytest.approx(expected)
    assert output.totals["clip_share"] == clipped


def test_a_clipped_token_has_no_gradient():
    batch = completions([[-0.5, -1.0]], [[-1.0, -1.0]], [1.0])
    policy_loss(batch, NO_KL).loss.backward()
    assert batch.logprobs.grad.tolist() == [[0.0, -0.5]]


@pytest.mark.parametrize(("kind", "expected"), [("k1", 0.5), ("k2", 0.125), ("k3", math.exp(-0.5) + 0.5 - 1)])
def test_kl_estimators(kind, expected):
    config = LossConfig(kl=kind, kl_coefficient=0.1)
    assert float(kl_estimate(torch.tensor(-0.5), kind)) == pytest.approx(expected)
    batch = completions([[-1.0]], [[-1.0]], [0.0], reference=[[-1.5]])
    output = policy_loss(batch, config)
    assert output.loss.item() == pytest.approx(0.1 * expected)
    assert output.totals["kl"] == pytest.approx(expected)


def test_an_action_has_one_ratio_at_step_level():
    config = LossConfig(kl_coefficient=0.0, clip_high=9.0, aggregation="traj-mean-step-mean")
    batch = completions([[-0.9, -0.8]], [[-1.0, -1.0]], [2.0], config=config)
    output = policy_loss(batch, config)
    assert output.loss.item() == pytest.approx(-2 * math.exp(0.3))
    output.loss.backward()
    assert batch.logprobs.grad[0].tolist() == pytest.approx([-2 * math.exp(0.3)] * 2)


@pytest.mark.parametrize("aggregation", LossConfig.model_fields["aggregation"].annotation.__args__)
def test_masked_tokens_change_nothing(aggregation):
    config = LossConfig(aggregation=aggregation, width=5)
    tight = completions([[-1.0, -2.0]], [[-1.1, -1.9]], [1.0], reference=[[-1.2, -2.0]], config=config)
    rows = {"logprobs": [[-1.0, -2.0, math.nan]], "behaviour": [[-1.1, -1.9, math.inf]]}
    loose = completions(
        **rows, advantages=[1.0], reference=[[-1.2, -2.0, math.nan]], mask=[[True, True, False]], config=config
    )
    outputs = policy_loss(tight, config), policy_loss(loose, config)
    assert outputs[0].loss.item() == pytest.approx(outputs[1].loss.item())
    assert outputs[0].totals == outputs[1].totals
    assert torch.equal(outputs[0].drift, outputs[1].drift)
    for batch, output in zip((tight, loose), outputs, strict=True):
        output.loss.backward()
        assert batch.logprobs.grad.isfinite().all()
    assert torch.allclose(tight.logprobs.grad, loose.logprobs.grad[:, :2])
    assert loose.logprobs.grad[0, 2] == 0


@pytest.mark.parametrize("aggregation", LossConfig.model_fields["aggregation"].annotation.__args__)
def test_micro_batches_add_up(aggregation):
    config = LossConfig(aggregation=aggregation)
    whole = completions(
        [[-1.0, -2.0], [-0.5, -0.1], [-0.3, -0.4]],
        [[-1.1, -1.9], [-0.6, -0.1], [-0.2, -0.4]],
        [1.0, -1.0, 0.5],
        mask=[[True, True], [True, False], [True, True]],
        config=config,
        episodes=[0, 0, 1],
    )
    parts = [replace(whole, **{f: getattr(whole, f)[rows] for f in whole.__slots__}) for rows in ([0, 2], [1])]
    outputs = [policy_loss(part, config) for part in parts]
    whole_output = policy_loss(whole, config)
    assert sum(output.loss.item() for output in outputs) == pytest.approx(whole_output.loss.item())
    assert averages(outputs) == pytest.approx(averages([whole_output]))


def test_averages_without_tokens_are_zero():
    assert averages([]) == {"clip_share": 0.0, "kl": 0.0, "ratio_mean": 0.0, "entropy": 0.0}


def test_mismatch():
    worked = mismatch(torch.tensor([math.log(2.0), math.log(0.5)]))
    assert worked["mismatch_mean"] == worked["mismatch_max"] == pytest.approx(math.log(2.0))
    assert worked["mismatch_k3"] == pytest.approx((2 + 0.5) / 2 - 1)
    assert worked["mismatch_ess"] == pytest.approx(2.5**2 / (4 + 0.25) / 2)
    assert worked["mismatch_tokens"] == 2
    assert mismatch(torch.zeros(3))["mismatch_ess"] == pytest.approx(1.0)
    assert mismatch(torch.zeros(0)) == worked | dict.fromkeys(worked, 0.0) | {"mismatch_ess": 1.0}
