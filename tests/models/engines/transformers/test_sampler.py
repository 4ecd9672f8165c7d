import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from coevo.configs.rollout.rollout_config import SamplingConfig
from coevo.models.engines.transformers.sampler import Sampler
from coevo.records.draws import key, uniforms

HALF_THIRD_SIXTH = torch.tensor([[math.log(3), math.log(2), 0.0]])


def draw(uniforms, logits=HALF_THIRD_SIXTH, **config):
    rows = torch.zeros(len(uniforms), dtype=torch.int64)
    tokens, logprobs = Sampler(SamplingConfig(**config)).draw(logits, rows, torch.tensor(uniforms, dtype=torch.float64))
    return tokens.tolist(), logprobs.tolist()


def test_inverse_cdf_of_worked_values():
    # Probabilities 1/2, 1/3, 1/6: the sums are .5, .833, 1.
    tokens, logprobs = draw([0.0, 0.49, 0.51, 0.83, 0.84, 1 - 1e-12])
    assert tokens == [0, 0, 1, 1, 2, 2]
    expected = [math.log(share) for share in (1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 6, 1 / 6)]
    assert logprobs == pytest.approx(expected, abs=1e-6)


def test_each_answer_is_drawn_from_its_own_row():
    logits = torch.tensor([[0.0, -torch.inf], [math.log(3), 0.0]])
    tokens, logprobs = Sampler(SamplingConfig()).draw(logits, torch.tensor([1, 0, 1]), torch.tensor([0.8, 0.8, 0.7]))
    assert tokens.tolist() == [1, 0, 0]
    assert logprobs.tolist() == pytest.approx([math.log(1 / 4), 0.0, math.log(3 / 4)], abs=1e-6)


def test_temperature_divides_the_logits():
    # At 1/2 the odds 3:2:1 become 9:4:1.
    tokens, logprobs = draw([9 / 14 - 0.01, 9 / 14 + 0.01, 13 / 14 + 0.01], temperature=0.5)
    assert tokens == [0, 1, 2]
    assert logprobs == pytest.approx([math.log(9 / 14), math.log(4 / 14), math.log(1 / 14)], abs=1e-6)


def test_nucleus_and_top_k_narrow_the_draw_and_its_logprob():
    # Of the two kept tokens the first has 3/5.
    for config in ({"top_k": 2}, {"top_p": 0.6}):
        tokens, logprobs = draw([0.59, 0.61, 0.999], **config)
        assert tokens == [0, 1, 1]
        assert logprobs == pytest.approx([math.log(3 / 5), math.log(2 / 5), math.log(2 / 5)], abs=1e-6)


def test_frequencies_follow_the_probabilities():
    points = uniforms([key("frequencies", row) for row in range(3000)], 1)[:, 0].tolist()
    tokens, _ = draw(points)
    shares = np.bincount(tokens, minlength=3) / len(tokens)
    assert shares == pytest.approx([1 / 2, 1 / 3, 1 / 6], abs=0.03)


def test_impossible_tokens_are_never_drawn():
    logits = torch.tensor([[-torch.inf, 0.0, -torch.inf, 0.0, -torch.inf]])
    tokens, _ = draw([0.0, 0.5, 1 - 1e-12], logits)
    assert tokens == [1, 3, 3]


@given(
    st.integers(0, 10**6),
    st.sampled_from([{}, {"top_k": 5}, {"top_p": 0.8}, {"top_k": 40, "top_p": 0.95}, {"temperature": 0.2}]),
)
def test_each_draw_that_rounding_changes_is_found(seed, config):
    rng, sampler = np.random.default_rng(seed), Sampler(SamplingConfig(**config))
    logits = torch.tensor(rng.normal(0, rng.choice([0.1, 2.0]), (4, 300)), dtype=torch.float32)
    noisy = logits + torch.tensor(rng.uniform(-5e-6, 5e-6, logits.shape), dtype=torch.float32)
    rows, points = torch.arange(4).repeat(100), torch.tensor(rng.random(400))
    # Some points lie at a border between tokens.
    sums = logits.double().div(config.get("temperature", 1.0)).softmax(-1).cumsum(-1)
    points[:40] = sums[rows[:40], torch.tensor(rng.integers(0, 300, 40))]
    (one, _), (other, _) = sampler.draw(logits, rows, points), sampler.draw(noisy, rows, points)
    assert not ((one != other) & ~sampler.unsettled(logits, rows, points, one)).any()


def test_few_draws_are_near_a_border():
    logits, points = torch.randn(1, 100, generator=torch.Generator().manual_seed(0)), torch.rand(5000)
    rows, sampler = torch.zeros(5000, dtype=torch.int64), Sampler(SamplingConfig())
    tokens, _ = sampler.draw(logits, rows, points)
    assert sampler.unsettled(logits, rows, points, tokens).float().mean() < 0.02
