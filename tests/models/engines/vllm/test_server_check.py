"""New weights are told from wrong ones and from those before the update, at the noise of half precision."""

import copy
from dataclasses import replace

import pytest
import torch
from support.policies import qwen

from coevo.configs.rollout.rollout_config import VllmEngineConfig
from coevo.models.engines.vllm.expected import probe_of
from coevo.models.engines.vllm.replica import closeness_metrics
from coevo.models.engines.vllm.server_check import Closeness, WeightsError
from coevo.models.policy.language_model import Policy

HALF = VllmEngineConfig(type="vllm", dtype="bfloat16")
URL = "http://127.0.0.1:1"


def moved(policy, size, seed=0):
    """The policy with noise of this share of each weight's spread; the padding's embedding stays zero."""
    model, noise = copy.deepcopy(policy.model), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in model.parameters():
            spread = weights.std(correction=0)
            weights.add_(size * spread * torch.randn(weights.shape, generator=noise) * (weights != 0))
    return Policy(model, policy.tokenizer)


def answer(probe):
    """Answer of a server with exactly the policy of a probe."""
    before = [{str(token): {"logprob": said}} for token, said in zip(probe.prompt[1:], probe.logprobs, strict=True)]
    after = {"token_logprobs": [probe.following[0]]}
    return {"prompt_logprobs": [None, *before], "token_ids": [0], "logprobs": after}


@pytest.fixture(scope="module")
def old():
    return qwen(1, hidden_size=64, heads=2, kv_heads=1, head_dim=32)


def rounded(policy):
    """The policy as a server below float32 computes it."""
    return Policy(copy.deepcopy(policy.model).bfloat16().float(), policy.tokenizer)


def test_weights_as_wrong_as_their_own_spread_are_refused(old):
    expected = probe_of(old, 1.0)
    expected.check(answer(probe_of(rounded(old), 1.0)), HALF, URL)
    with pytest.raises(WeightsError, match="log-probs are off by"):
        expected.check(answer(probe_of(moved(old, 1.0), 1.0)), HALF, URL)


@pytest.mark.parametrize("size", [0.02, 0.05])
def test_weights_of_one_step_before_are_refused(old, size):
    """The step is within the tolerance, so that only the comparison of both finds it."""
    new = moved(old, size)
    expected = probe_of(new, 1.0, probe_of(old, 1.0).logprobs)
    expected.check(answer(probe_of(rounded(new), 1.0)), HALF, URL)
    stale = answer(probe_of(rounded(old), 1.0))
    replace(expected, former=()).check(stale, HALF, URL)
    with pytest.raises(WeightsError, match="still has the weights before the update"):
        expected.check(stale, HALF, URL)


def test_a_step_below_the_rounding_is_accepted(old):
    """Old and new cannot be told apart: an answer that happens to be nearer to the old ones is no proof."""
    new = moved(old, 1e-5)
    expected = probe_of(new, 1.0, probe_of(old, 1.0).logprobs)
    assert 0 < expected.change < 1e-3
    found = expected.check(answer(probe_of(rounded(old), 1.0)), HALF, URL)
    assert not found.distinguishable
    assert found.noise > found.change == expected.change


def test_a_step_above_the_noise_is_distinguishable(old):
    new = moved(old, 0.05)
    found = probe_of(new, 1.0, probe_of(old, 1.0).logprobs).check(answer(probe_of(rounded(new), 1.0)), HALF, URL)
    assert found.distinguishable
    assert probe_of(new, 1.0).check(answer(probe_of(rounded(new), 1.0)), HALF, URL) is None


def test_the_metric_is_the_share_of_servers_whose_noise_hides_the_change():
    found = closeness_metrics([Closeness(0.1, 0.01), Closeness(0.1, 0.06)])
    assert found == {"change": 0.1, "noise": 0.06, "not_distinguishable": 0.5}
    assert closeness_metrics([]) == {}


def test_the_distance_is_the_mean_in_nats(old):
    """Off by 0.15 in half of the places: 0.075 is within the tolerance, 0.15 in all of them is not."""
    expected = probe_of(old, 1.0)
    shift = [said - 0.15 * (place % 2) for place, said in enumerate(expected.logprobs)]
    expected.check(answer(replace(expected, logprobs=shift)), HALF, URL)
    with pytest.raises(WeightsError, match=r"off by 1\.5e-01 nats, more than 0\.1"):
        everywhere = [said - 0.15 for said in expected.logprobs]
        expected.check(answer(replace(expected, logprobs=everywhere)), HALF, URL)
