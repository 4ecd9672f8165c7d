"""Sampling on a model's card that a run does not follow."""

import json

import pytest

from coevo.configs.policy_config import PretrainedPolicyConfig, ScratchPolicyConfig
from coevo.configs.rollout.rollout_config import SamplingConfig
from coevo.models.policy.ends import CARD, ignored
from coevo.utilities.errors import CoevoError

QWEN3 = {
    "bos_token_id": 151643, "do_sample": True, "eos_token_id": [151645, 151643],
    "temperature": 0.6, "top_k": 20, "top_p": 0.95, "transformers_version": "4.51.0",
}  # fmt: skip


def named(folder, card, **sampling):
    (folder / CARD).write_text(card if isinstance(card, str) else json.dumps(card))
    (folder / "config.json").write_text("{}")
    return ignored(PretrainedPolicyConfig(type="pretrained", path=str(folder)), SamplingConfig(**sampling))


def test_settings_are_named_that_differ_or_that_no_run_has_and_neutral_ones_are_not(tmp_path):
    assert named(tmp_path, QWEN3) == ({"temperature": 0.6, "top_p": 0.95, "top_k": 20}, {})
    more = QWEN3 | {"repetition_penalty": 1.05, "do_sample": False}
    found = ({"top_p": 0.95}, {"do_sample": False, "repetition_penalty": 1.05})
    assert named(tmp_path, more, temperature=0.6, top_k=20) == found
    assert named(tmp_path, {"temperature": 1.0, "top_p": None, "repetition_penalty": 1.0, "min_p": 0}) == ({}, {})


@pytest.mark.parametrize("value", [0, -1, 1e9, "warm", [0.6], float("nan")])
def test_a_value_that_no_run_can_have_is_followed_by_no_setting(tmp_path, value):
    ours, others = named(tmp_path, {"temperature": value})
    assert (ours, list(others)) == ({}, ["temperature"])


def test_a_model_without_a_card_has_none(tmp_path):
    assert ignored(PretrainedPolicyConfig(type="pretrained", path=str(tmp_path)), SamplingConfig()) == ({}, {})
    assert ignored(ScratchPolicyConfig(), SamplingConfig()) == ({}, {})


@pytest.mark.parametrize("card", ["[]", "{", "[" * 100_000])
def test_a_malformed_card_is_one_line(tmp_path, card):
    with pytest.raises(CoevoError, match=CARD):
        named(tmp_path, card)
