"""A model whose layers do not follow a trie stops at its first batch, with the setting under which it trains."""

import copy
from dataclasses import replace

import pytest
import torch
from support.rows import TEMPERATURE, batch_of, plain_logprobs, ragged
from transformers import AutoModelForCausalLM, GraniteConfig, Qwen3NextConfig, StableLmConfig

from coevo.configs.update.update_config import OptimizerConfig, UpdateConfig
from coevo.models.losses.vocabulary import LogitScale
from coevo.models.trainer import training_session
from coevo.models.trainer.packed_forward import PolicyForward
from coevo.models.trainer.packing import pack_rows
from coevo.models.trainer.training_session import TrainingSession, check_trie
from coevo.utilities.errors import CoevoError

SIZES = {
    "vocab_size": 24,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.2,
    "pad_token_id": 0,
}

QWEN3_NEXT = {
    "layer_types": ["linear_attention", "full_attention"],
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
}


class Engine:
    """The part of a DeepSpeed engine that forwards."""

    device = torch.device("cpu")

    def __init__(self, model):
        self.module = PolicyForward(model, TEMPERATURE)

    def __call__(self, packed):
        return self.module(packed)


def made(config, **changes):
    torch.manual_seed(0)
    if config is Qwen3NextConfig:
        changes |= QWEN3_NEXT
    return AutoModelForCausalLM.from_config(config(**SIZES | changes), attn_implementation="sdpa").eval()


@pytest.mark.parametrize("half", [False, True])
def test_a_model_that_follows_the_trie_passes(policy, half):
    model = copy.deepcopy(policy.model)
    check_trie(Engine(model.bfloat16() if half else model), batch_of(*ragged()), 10_000)


@pytest.mark.parametrize("config", [Qwen3NextConfig, StableLmConfig])
def test_a_model_that_does_not_is_stopped_and_trains_row_by_row(config):
    model, (prompts, completions, groups) = made(config), ragged()
    batch = batch_of(prompts, completions, groups)
    named = rf"log-probs of a {model.config.model_type} policy in a trie differ .* nats, .*: set update\.packing=rows"
    with pytest.raises(CoevoError, match=named) as error:
        check_trie(Engine(model), batch, 10_000)
    assert "\n" not in str(error.value)
    logprobs, _ = PolicyForward(model, TEMPERATURE)(pack_rows(batch, range(len(batch))))
    for row, plain in enumerate(plain_logprobs(model, prompts, completions)[0]):
        torch.testing.assert_close(logprobs[row, : len(plain)], plain, atol=1e-5, rtol=0)


def test_half_precision_may_differ_by_twice_what_padding_changes():
    for noise, allowed in [(0.0, 0.02), (0.009, 0.02), (0.03, 0.06), (0.2, 0.1)]:
        assert training_session.allowed(torch.tensor([noise / 2, noise * 3 / 2])) == pytest.approx(allowed)


@pytest.mark.parametrize("config", [Qwen3NextConfig, StableLmConfig])
def test_what_is_wrong_in_half_precision_is_not_taken_for_rounding(config, monkeypatch):
    monkeypatch.setattr(training_session, "_padded", lambda rows: replace(rows, positions=rows.positions * 7))
    with pytest.raises(CoevoError, match=r"nats, allowed is 0\.1 on average"):
        check_trie(Engine(made(config).bfloat16()), batch_of(*ragged()), 10_000)


def test_an_output_layer_with_another_scale_is_noticed():
    model = made(GraniteConfig, logits_scaling=2.0)
    engine = Engine(model)
    engine.module.head.scale = LogitScale(TEMPERATURE)
    with pytest.raises(CoevoError, match=r"of a granite policy"):
        check_trie(engine, batch_of(*ragged()), 10_000)


def test_a_model_without_the_arguments_of_a_trie_is_named(policy):
    model = copy.deepcopy(policy.model)
    forward = model.model.forward
    model.model.forward = lambda input_ids, position_ids=None, use_cache=False: forward(input_ids=input_ids)
    with pytest.raises(
        CoevoError, match=r"a qwen3 policy cannot forward a trie \(.*'trie'\): set update\.packing=rows"
    ):
        check_trie(Engine(model), batch_of(*ragged()), 10_000)


def test_a_model_whose_shapes_do_not_fit_a_trie_is_named(policy):
    model = copy.deepcopy(policy.model)

    def forward(*_, **__):
        raise RuntimeError("The size of tensor a (3)\nmust match the size of tensor b (4)")

    model.model.forward = forward
    with pytest.raises(CoevoError, match=r"cannot forward a trie \(The size of tensor a \(3\) must match") as error:
        check_trie(Engine(model), batch_of(*ragged()), 10_000)
    assert "\n" not in str(error.value)


def session(policy_path, **settings):
    config = UpdateConfig(optimizer=OptimizerConfig(lr=1e-3), **settings)
    paths = {"policy": str(policy_path), "reference": str(policy_path), "optimizer": ""}
    return TrainingSession(config=config.model_dump_json(), temperature=TEMPERATURE, threads=1, **paths)


def test_a_trainer_checks_its_first_samples_only(policy_path, samples_path, empty_path, joined, monkeypatch):
    strict = session(policy_path)
    strict.update(str(empty_path), [0])
    monkeypatch.setattr(training_session, "MAX_FLOAT32_DIFFERENCE", -1.0)
    with pytest.raises(CoevoError, match=r"set update\.packing=rows"):
        strict.update(str(samples_path), [0])
    monkeypatch.undo()
    strict.update(str(samples_path), [0])
    monkeypatch.setattr(training_session, "MAX_FLOAT32_DIFFERENCE", -1.0)
    one = strict.update(str(samples_path), [1])
    rows = session(policy_path, packing="rows")
    rows.update(str(samples_path), [0])
    other = rows.update(str(samples_path), [1])
    assert one["loss"] == pytest.approx(other["loss"], abs=1e-5)
    assert one["grad_norm"] == pytest.approx(other["grad_norm"], rel=1e-3)
