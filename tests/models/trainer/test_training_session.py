"""The critic: a copy of the policy that says one number, and learns it."""

import copy
from dataclasses import replace

import pytest
import torch
from peft import LoraConfig, get_peft_model

from coevo.configs.update.advantage_config import GaeConfig
from coevo.configs.update.update_config import CriticConfig, DeepSpeedConfig, OptimizerConfig, UpdateConfig
from coevo.models.trainer import deepspeed_engine
from coevo.models.trainer.training_session import start_critic
from coevo.models.trainer.update_batch import read
from coevo.records.draws import key

OPTIMIZER = OptimizerConfig(lr=1e-2, minibatches=2, epochs=2)


def settings(tokens=16384, clip=None):
    return UpdateConfig(
        advantage=GaeConfig(type="gae"),
        critic=CriticConfig(optimizer=OPTIMIZER, clip=clip),
        deepspeed=DeepSpeedConfig(tokens=tokens),
    )


def trained(policy, batch, **changes):
    it = start_critic(policy.model, settings(**changes))
    it.update(batch, key(0))
    return it


@pytest.fixture(scope="module")
def learned(policy, batch, joined):
    """A critic after an update, and its values."""
    it = trained(policy, batch)
    return it, it.values(batch)


def test_it_says_nothing_of_a_state_before_it_has_learned_and_leaves_the_policy_alone(
    policy, batch, empty_path, joined
):
    before = copy.deepcopy(policy.model.state_dict())
    fresh = start_critic(policy.model, settings())
    assert not fresh.values(batch).any()
    fresh.update(batch, key(0))
    values = fresh.values(batch)
    assert values.any()
    assert fresh.update(read(empty_path), key(1)) == {"critic_loss": 0.0, "critic_grad_norm": 0.0}
    assert torch.equal(fresh.values(batch), values), "a batch without samples changes nothing"
    assert policy.model.get_output_embeddings().out_features > 1
    assert all(torch.equal(before[name], value) for name, value in policy.model.state_dict().items())


def test_it_learns_what_it_is_told(policy, batch, joined):
    told = replace(batch, returns=torch.where(batch.mask, (torch.arange(len(batch)) % 2)[:, None].float(), 0.0))
    it = start_critic(policy.model, settings())
    losses = [it.update(told, key(number))["critic_loss"] for number in range(6)]
    assert losses[-1] < losses[0] / 2


def test_values_are_those_of_the_plain_forward_whatever_the_micro_batches(policy, batch, learned):
    it, values = learned
    module = it._engine.module
    for row, (prompt, completion) in enumerate(zip(batch.prompts, batch.completions, strict=True)):
        plain = module.model(input_ids=torch.tensor([[*prompt, *completion]])).logits[0, len(prompt) - 1 : -1, 0]
        torch.testing.assert_close(values[row, : len(completion)], plain, atol=1e-5, rtol=0)
    small = trained(policy, batch, tokens=60)
    torch.testing.assert_close(small.values(batch)[batch.mask], values[batch.mask], atol=1e-4, rtol=0)


def test_what_lies_beyond_a_row_changes_nothing(policy, batch, learned):
    spoilt = replace(batch, returns=torch.where(batch.mask, batch.returns, torch.nan))
    assert torch.equal(trained(policy, spoilt).values(batch), learned[1])


def test_a_restored_critic_continues_exactly(policy, batch, joined, tmp_path):
    first = trained(policy, batch, clip=0.2)
    first.save(tmp_path)
    second = start_critic(policy.model, settings(clip=0.2), tmp_path)
    assert torch.equal(first.values(batch), second.values(batch))
    for it in (first, second):
        it.update(batch, key(1))
    assert torch.equal(first.values(batch), second.values(batch))


def test_of_adapters_in_half_precision_only_they_and_the_head_are_trained(policy, batch, joined):
    half = get_peft_model(copy.deepcopy(policy.model).bfloat16(), LoraConfig(r=2, target_modules="all-linear"))
    it = start_critic(half, settings())
    names = list(deepspeed_engine.trainable(it._engine.module))
    assert [name for name in names if "lora_" not in name and "head" not in name] == []
    assert any("head" in name for name in names)
    before = it.values(batch)
    it.update(batch, key(0))
    assert before.shape == batch.mask.shape
    assert before.dtype == torch.float32
    assert not torch.equal(it.values(batch), before)


@pytest.mark.parametrize("stage", [0, 2, 3])
def test_every_zero_stage_trains_it_alike(policy, batch, learned, stage):
    config = settings().model_copy(update={"deepspeed": DeepSpeedConfig(zero_stage=stage)})
    it = start_critic(policy.model, config)
    it.update(batch, key(0))
    torch.testing.assert_close(it.values(batch)[batch.mask], learned[1][batch.mask], atol=1e-4, rtol=0)
