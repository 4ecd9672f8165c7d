"""The critic: a copy of the policy that says one number, and learns it."""

import copy
from dataclasses import replace

import pytest
import torch
from peft import LoraConfig, get_peft_model
from support.rows import packed_as, ragged

from coevo.configs.update.advantage import GaeConfig
from coevo.configs.update.deepspeed import DeepSpeedConfig
from coevo.configs.update.update import CriticConfig, OptimizerConfig, UpdateConfig
from coevo.models.trainer import critic as critics
from coevo.models.trainer import engine
from coevo.models.trainer.batch import read
from coevo.models.trainer.packing import pack_trie
from coevo.records.draws import key

OPTIMIZER = OptimizerConfig(lr=1e-2, minibatches=2, epochs=4)


def settings(tokens=16384, clip=None):
    return UpdateConfig(
        advantage=GaeConfig(type="gae"),
        critic=CriticConfig(optimizer=OPTIMIZER, clip=clip),
        deepspeed=DeepSpeedConfig(tokens=tokens),
    )


def trained(policy, batch, **changes):
    it = critics.start(policy.model, settings(**changes))
    it.update(batch, key(0))
    return it


def test_it_says_nothing_of_a_state_before_it_has_learned_and_leaves_the_policy_alone(policy, batch, joined):
    before = copy.deepcopy(policy.model.state_dict())
    fresh = critics.start(policy.model, settings())
    assert not fresh.values(batch).any()
    fresh.update(batch, key(0))
    assert fresh.values(batch).any()
    assert policy.model.get_output_embeddings().out_features > 1
    assert all(torch.equal(before[name], value) for name, value in policy.model.state_dict().items())


def test_it_learns_what_it_is_told(policy, batch, joined):
    told = replace(batch, returns=torch.where(batch.mask, (torch.arange(len(batch)) % 2)[:, None].float(), 0.0))
    it = critics.start(policy.model, settings())
    losses = [it.update(told, key(number))["critic_loss"] for number in range(6)]
    assert losses[-1] < losses[0] / 2


def test_values_are_those_of_the_plain_forward_whatever_the_micro_batches(policy, batch, joined):
    it = trained(policy, batch)
    module = it._engine.module
    values = it.values(batch)
    for row, (prompt, completion) in enumerate(zip(batch.prompts, batch.completions, strict=True)):
        plain = module.model(input_ids=torch.tensor([[*prompt, *completion]])).logits[0, len(prompt) - 1 : -1, 0]
        torch.testing.assert_close(values[row, : len(completion)], plain, atol=1e-5, rtol=0)
    small = trained(policy, batch, tokens=60)
    torch.testing.assert_close(small.values(batch)[batch.mask], values[batch.mask], atol=1e-4, rtol=0)


def test_what_lies_beyond_a_row_changes_nothing(policy, batch, joined):
    spoilt = replace(batch, returns=torch.where(batch.mask, batch.returns, torch.nan))
    assert torch.equal(trained(policy, batch).values(batch), trained(policy, spoilt).values(batch))


def test_a_restored_critic_continues_exactly(policy, batch, joined, tmp_path):
    first = trained(policy, batch, clip=0.2)
    first.save(tmp_path)
    second = critics.start(policy.model, settings(clip=0.2), tmp_path)
    assert torch.equal(first.values(batch), second.values(batch))
    for it in (first, second):
        it.update(batch, key(1))
    assert torch.equal(first.values(batch), second.values(batch))


def test_a_batch_without_samples_changes_nothing(policy, batch, empty_path, joined):
    it = trained(policy, batch)
    before = it.values(batch)
    assert it.update(read(empty_path), key(1)) == {"critic_loss": 0.0, "critic_grad_norm": 0.0}
    assert torch.equal(it.values(batch), before)


def test_of_an_adapted_policy_only_adapters_and_head_are_trained(policy):
    adapted = get_peft_model(copy.deepcopy(policy.model), LoraConfig(r=2, target_modules="all-linear"))
    model = critics.with_scalar_head(copy.deepcopy(adapted))
    trained_names = list(engine.trainable(model))
    assert [name for name in trained_names if "lora_" not in name and "head" not in name] == []
    assert any("head" in name for name in trained_names)
    prompts, completions, groups = ragged()
    values = critics.CriticForward(model)(packed_as(pack_trie, (prompts, completions, groups)))
    assert values.shape == (len(prompts), max(map(len, completions)))


def test_the_critic_of_adapters_in_half_precision_trains(policy, batch, joined):
    half = get_peft_model(copy.deepcopy(policy.model).bfloat16(), LoraConfig(r=2, target_modules="all-linear"))
    it = critics.start(half, settings())
    before = it.values(batch)
    it.update(batch, key(0))
    assert before.dtype == torch.float32
    assert not torch.equal(it.values(batch), before)


@pytest.mark.parametrize("stage", [0, 2, 3])
def test_every_zero_stage_trains_it_alike(policy, batch, joined, stage):
    config = settings().model_copy(update={"deepspeed": DeepSpeedConfig(zero_stage=stage)})
    it = critics.start(policy.model, config)
    it.update(batch, key(0))
    same = trained(policy, batch).values(batch)
    torch.testing.assert_close(it.values(batch)[batch.mask], same[batch.mask], atol=1e-4, rtol=0)
