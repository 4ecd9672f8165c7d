"""Sizes of policies that need not be here are those that their makers publish, and those of policies that are built."""

import pytest
from support.policies import SMALL, WORDS, llama, qwen
from support.worker import CONFIG, environment

from coevo.configs.load.load import load_recipe
from coevo.configs.load.pairing import Pairing, load_pairing
from coevo.configs.policy_config import LoraConfig, PretrainedPolicyConfig
from coevo.models.capacity.model_shape import shape_of
from coevo.models.policy.context import CONTEXT_WORDS
from coevo.models.policy.policy import build, save
from coevo.models.policy.tokenizers import word_tokenizer
from coevo.records.draws import key
from coevo.utilities.errors import CoevoError

PUBLISHED = {
    "homerules-slea-rl-qwen2.5-1.5b": 1_543_714_304,
    "homerules-slea-rl-qwen2.5-7b": 7_615_616_512,
    "homerules-coevo-rl-qwen3-0.6b": 596_049_920,
    "homerules-coevo-rl-qwen3-4b": 4_022_468_096,
    "homerules-coevo-rl-qwen3-8b": 8_190_735_360,
    "babyai-context-lite-qwen2.5-3b": 3_085_938_688,
}


@pytest.mark.parametrize("recipe", PUBLISHED)
def test_parameters_are_those_that_the_makers_publish(recipe):
    assert shape_of(load_recipe(recipe).policy, 0).parameters == PUBLISHED[recipe]


@pytest.mark.parametrize(("model", "published"), [("llama3.1-8b", 8_030_261_248), ("llama3.2-3b", 3_212_749_824)])
def test_a_llama_has_the_published_number_of_parameters(model, published):
    assert shape_of(load_pairing(Pairing("homerules", "grpo", model)).policy, 0).parameters == published


def test_a_policy_from_scratch_is_counted_as_it_is_built_with_its_vocabulary():
    policy = build(SMALL, WORDS, key(0))
    shape = shape_of(SMALL, len(word_tokenizer(WORDS)))
    assert shape.parameters == shape.trainable == sum(each.numel() for each in policy.model.parameters())
    assert (shape.queries, shape.keys, shape.normed, shape.bytes) == (32, 16, True, 4)
    words = (*environment().vocabulary, *CONTEXT_WORDS)
    built = sum(each.numel() for each in build(CONFIG.policy, words, key(0)).model.parameters())
    assert shape_of(CONFIG.policy, len(word_tokenizer(words))).parameters == built


@pytest.mark.parametrize("targets", ["all-linear", ("q_proj", "v_proj"), r".*\.(gate|up)_proj"])
def test_adapters_are_counted_as_peft_makes_them(targets, tmp_path):
    save(llama(), tmp_path)
    config = PretrainedPolicyConfig(
        type="pretrained", path=str(tmp_path), lora=LoraConfig(r=4, alpha=8, target_modules=targets)
    )
    built = build(config, (), key(0)).model
    shape = shape_of(config, 0)
    assert shape.trainable == sum(each.numel() for each in built.parameters() if each.requires_grad)
    assert shape.parameters == sum(each.numel() for each in built.parameters()) - shape.trainable
    assert not shape.normed


def test_the_model_itself_wins_over_what_is_said_of_it(tmp_path):
    save(qwen(), tmp_path)
    said = load_recipe("homerules-coevo-rl-qwen3-8b").policy
    assert shape_of(said.model_copy(update={"path": str(tmp_path)}), 0).hidden == SMALL.hidden_size


def test_a_model_of_which_nothing_is_known_is_one_line():
    with pytest.raises(CoevoError, match=r"'not/here' cannot be read, .*: `hf download not/here`, or name a folder"):
        shape_of(PretrainedPolicyConfig(type="pretrained", path="not/here"), 0)


@pytest.mark.parametrize(
    ("targets", "reason"),
    [("nothing", "no layer"), ("lm_head", "the output layer"), ("embed_tokens", "the embeddings")],
)
def test_adapters_without_a_layer_or_of_an_outer_layer_are_refused(tmp_path, targets, reason):
    save(llama(), tmp_path)
    lora = LoraConfig(target_modules=(targets,))
    with pytest.raises(CoevoError, match=reason):
        shape_of(PretrainedPolicyConfig(type="pretrained", path=str(tmp_path), lora=lora), 0)
