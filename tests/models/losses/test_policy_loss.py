"""The policy loss against values worked out by hand."""

import math
from dataclasses import replace
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from coevo.configs.update.loss import Aggregation, LossConfig
from coevo.models.losses.aggregation import weights_of
from coevo.models.losses.policy_loss import Completions, averages, figures, policy_loss

NO_KL = LossConfig(kl_coefficient=0.0)


def completions(
    logprobs, behaviour, advantages, *, reference=None, old=None, mask=None, config=NO_KL, episodes=None, entropy=None
):
    logprobs = torch.tensor(logprobs, dtype=torch.float64, requires_grad=True)
    mask = torch.ones_like(logprobs, dtype=torch.bool) if mask is None else torch.tensor(mask)
    episodes = torch.arange(len(mask)) if episodes is None else torch.tensor(episodes)
    return Completions(
        logprobs=logprobs,
        old=torch.tensor(behaviour if old is None else old, dtype=torch.float64),
        behaviour=torch.tensor(behaviour, dtype=torch.float64),
        reference=torch.tensor(behaviour if reference is None else reference, dtype=torch.float64),
        entropy=torch.full_like(logprobs, 0.5).detach() if entropy is None else entropy,
        advantages=torch.tensor(advantages, dtype=torch.float64)[:, None].expand(mask.shape),
        mask=mask,
        weights=weights_of(mask, episodes, config.width or mask.shape[1], config.aggregation),
    )


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
    config = LossConfig(kl_coefficient=0.0, clip_low=0.1, clip_high=0.3, dual_clip=None)
    output = policy_loss(completions([[-1.0 + log_ratio]], [[-1.0]], [advantage], config=config), config)
    assert output.loss.item() == pytest.approx(expected)
    assert output.totals["clip_share"] == clipped


def test_a_clipped_token_has_no_gradient():
    batch = completions([[-0.5, -1.0]], [[-1.0, -1.0]], [1.0])
    policy_loss(batch, NO_KL).loss.backward()
    assert batch.logprobs.grad.tolist() == [[0.0, -0.5]]


def test_kl_counts_in_the_loss_or_is_only_reported():
    k3 = math.exp(-0.5) + 0.5 - 1
    for place, expected in (("loss", 0.1 * k3), ("reward", 0.0)):
        config = LossConfig(kl_coefficient=0.1, kl_in=place)
        output = policy_loss(completions([[-1.0]], [[-1.0]], [0.0], reference=[[-1.5]]), config)
        assert output.loss.item() == pytest.approx(expected)
        assert output.totals["kl"] == pytest.approx(k3)


@pytest.mark.parametrize(
    ("log_ratio", "advantage", "expected", "bounded"),
    [
        (math.log(5.0), -1.0, 3.0, 1),  # a bad action that has become likely costs at most c |A|
        (math.log(2.5), -1.0, 2.5, 0),
        (math.log(5.0), 1.0, -1.2, 0),  # good actions are left alone
        (math.log(0.5), -1.0, 0.8, 0),
    ],
)
def test_dual_clip(log_ratio, advantage, expected, bounded):
    config = LossConfig(kl_coefficient=0.0, dual_clip=3.0)
    output = policy_loss(completions([[-2.0 + log_ratio]], [[-2.0]], [advantage]), config)
    assert output.loss.item() == pytest.approx(expected)
    assert output.totals["dual_clip_share"] == bounded


@settings(max_examples=300)
@given(
    gaps=st.lists(st.floats(-90, 90), min_size=1, max_size=4),
    advantage=st.floats(-100, 100),
    aggregation=st.sampled_from(get_args(Aggregation)),
    cap=st.none() | st.floats(0.1, 10),
)
def test_the_loss_is_bounded_by_default(gaps, advantage, aggregation, cap):
    """By 3 times the advantage, and as many times the importance weight, wherever the policy has moved to."""
    config = LossConfig(kl_coefficient=0.0, aggregation=aggregation, importance_cap=cap)
    batch = completions([gaps], [[0.0] * len(gaps)], [advantage], old=[[0.0] * len(gaps)], config=config)
    bound = 3.0 * abs(advantage) * float(batch.weights.sum()) * (1.0 if cap is None else max(cap, 1.0))
    rounding = 1e-300  # of sums of the smallest numbers
    assert abs(policy_loss(batch, config).loss.item()) <= bound * (1 + 1e-6) + rounding  # weights are float32


def test_truncated_importance_weights_scale_the_surrogate_but_not_kl():
    config = LossConfig(kl_coefficient=0.1, importance_cap=2.0)
    gaps = [math.log(0.5), math.log(5.0)]
    rows = {"old": [[-1.0, -1.0]], "behaviour": [[-1.0 - gap for gap in gaps]], "reference": [[-1.5, -1.5]]}
    output = policy_loss(completions([[-1.0, -1.0]], advantages=[1.0], **rows), config)
    k3 = math.exp(-0.5) + 0.5 - 1
    assert output.loss.item() == pytest.approx((-0.5 - 2.0) / 2 + 0.1 * k3)
    assert output.totals["importance_weight"] == pytest.approx(2.5)
    assert output.totals["importance_capped_share"] == 1
    assert output.totals["ratio_mean"] == pytest.approx(2.0)  # to the policy before the update, not to the engine
    assert output.drift.tolist() == pytest.approx(gaps)


def test_a_whole_action_has_one_importance_weight():
    config = LossConfig(kl_coefficient=0.0, importance_cap=9.0, aggregation="traj-mean-step-mean")
    batch = completions([[-1.0, -1.0]], [[-1.5, -1.3]], [1.0], old=[[-1.0, -1.0]], config=config)
    assert policy_loss(batch, config).loss.item() == pytest.approx(-math.exp(0.8))


def test_entropy_is_a_bonus_with_a_gradient():
    entropy = torch.tensor([[0.5, 0.7]], dtype=torch.float64, requires_grad=True)
    config = LossConfig(kl_coefficient=0.0, entropy_coefficient=0.01)
    output = policy_loss(completions([[-1.0, -1.0]], [[-1.0, -1.0]], [0.0], entropy=entropy), config)
    assert output.loss.item() == pytest.approx(-0.006)
    assert output.totals["entropy_bonus"] == pytest.approx(0.012)
    output.loss.backward()
    assert entropy.grad.tolist() == [[-0.005, -0.005]]


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        ({"dual_clip": 3.0}, {"dual_clip_share"}),
        ({"importance_cap": 2.0}, {"importance_weight", "importance_capped_share"}),
        ({"entropy_coefficient": 0.1}, {"entropy_bonus"}),
    ],
)
def test_each_part_has_a_figure_that_only_it_leaves(setting, names):
    assert set(figures(LossConfig(**{"dual_clip": None} | setting))) - set(figures(LossConfig(dual_clip=None))) == names


def test_an_action_has_one_ratio_at_step_level():
    config = LossConfig(kl_coefficient=0.0, clip_high=9.0, aggregation="traj-mean-step-mean")
    batch = completions([[-0.9, -0.8]], [[-1.0, -1.0]], [2.0], config=config)
    output = policy_loss(batch, config)
    assert output.loss.item() == pytest.approx(-2 * math.exp(0.3))
    output.loss.backward()
    assert batch.logprobs.grad[0].tolist() == pytest.approx([-2 * math.exp(0.3)] * 2)


@pytest.mark.parametrize(("tokens", "clipped"), [(100, 0.31), (25, 0.04), (400, 0.60)])
def test_the_precision_of_the_engine_clips_whole_actions_unless_the_ratio_is_the_trainers(tokens, clipped):
    """Shares of N(0, .02 sqrt(tokens)) outside of log .8 to log 1.2, before anything was learned."""
    config = LossConfig(kl_coefficient=0.0, aggregation="traj-mean-step-mean")
    trainer = torch.full((4000, tokens), -1.0, dtype=torch.float64)
    engine = trainer + 0.02 * torch.randn(trainer.shape, generator=torch.Generator().manual_seed(0))
    shares = []
    for old in (engine, trainer):
        batch = completions(trainer.tolist(), engine.tolist(), [1.0] * len(trainer), old=old.tolist(), config=config)
        ratio = policy_loss(batch, config).totals["ratio_mean"] / batch.mask.sum()
        found = (old - trainer).sum(1).neg().exp()
        shares.append(float(((found < 0.8) | (found > 1.2)).double().mean()))
        assert float(ratio) == pytest.approx(float(found.mean()))
    assert shares == [pytest.approx(clipped, abs=0.02), 0.0]
    assert config.recomputes
    assert not LossConfig().recomputes


@pytest.mark.parametrize("aggregation", get_args(Aggregation))
@pytest.mark.parametrize("parts", [{}, {"dual_clip": 3.0, "importance_cap": 2.0, "entropy_coefficient": 0.1}])
def test_masked_tokens_change_nothing(aggregation, parts):
    width = 5 if aggregation == "seq-mean-token-sum-norm" else None
    config = LossConfig(aggregation=aggregation, width=width, **parts)
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


@pytest.mark.parametrize("aggregation", get_args(Aggregation))
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
    assert averages(outputs, config) == pytest.approx(averages([whole_output], config))


def test_averages_are_over_the_tokens_of_all_outputs():
    one = policy_loss(completions([[-1.0 + math.log(0.5)]], [[-1.0]], [1.0]), NO_KL)
    two = policy_loss(completions([[-1.0, -1.0]], [[-1.0, -1.0]], [1.0]), NO_KL)
    assert averages([one], NO_KL)["ratio_mean"] == pytest.approx(0.5)
    assert averages([one, two], NO_KL)["ratio_mean"] == pytest.approx(2.5 / 3)
    assert averages([one, two], NO_KL)["entropy"] == pytest.approx(0.5)
    names = ("clip_share", "kl", "ratio_mean", "entropy", "dual_clip_share")
    assert averages([], LossConfig()) == dict.fromkeys(names, 0.0)
