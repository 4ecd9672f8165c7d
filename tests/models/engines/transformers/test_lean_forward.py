import pytest
import torch
from support.policies import llama, qwen, qwen2
from transformers import MistralConfig, MistralForCausalLM

from coevo.configs.policy_config import LoraConfig, PretrainedPolicyConfig
from coevo.models.engines.transformers.key_values import SlotCache
from coevo.models.engines.transformers.lean_forward import Columns, LeanForward, forward_of, forward_of_model
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import build, load_weights, save
from coevo.records.draws import key

POLICIES = {"qwen3": lambda: qwen(init_std=0.3), "qwen2": qwen2, "llama": llama}
ROWS, BEFORE = 3, 6


def columns(new, before, kept, seed):
    """Random tokens, of which each attends to itself and to a random half of what came before it."""
    rng = torch.Generator().manual_seed(seed)
    seen = torch.rand(ROWS, 1, new, before + new, generator=rng) < 0.5
    seen[..., before:] = seen[..., before:].tril() | torch.eye(new, dtype=torch.bool)
    return Columns(
        tokens=torch.randint(0, 16, (ROWS, new), generator=rng),
        positions=torch.randint(0, 40, (ROWS, new), generator=rng),
        bias=torch.zeros(seen.shape).masked_fill(~seen, -torch.inf),
        kept=kept,
    )


@torch.inference_mode()
def computed(forward):
    """Logits of a forward of several columns and of one of a single column behind it, and what the cache has then."""
    cache = SlotCache(BEFORE + 1)
    logits = [forward(columns(BEFORE, 0, 4, 1), cache), forward(columns(1, BEFORE, 1, 2), cache)]
    rows, places = torch.ones(ROWS, BEFORE + 1).nonzero(as_tuple=True)
    return [*logits, *(part for layer in cache.columns(rows, places) for part in layer)]


@pytest.mark.parametrize("kind", POLICIES)
def test_computes_what_the_model_does(kind):
    policy = POLICIES[kind]()
    model = policy.model
    assert isinstance(forward_of(policy), LeanForward)
    expected, made = computed(forward_of_model(model)), computed(LeanForward(model))
    assert [part.shape[0] for part in made[:2]] == [ROWS * 4, ROWS]
    for one, other in zip(made, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_weights_count_as_they_are_at_the_time(tmp_path):
    save(qwen(5, init_std=0.3), tmp_path)
    policy = qwen(4, init_std=0.3)
    forward = LeanForward(policy.model)
    before = computed(forward)[0]
    load_weights(policy, tmp_path)
    after = computed(forward)[0]
    assert not torch.allclose(before, after, atol=0.1)
    assert torch.allclose(after, computed(forward_of_model(qwen(5, init_std=0.3).model))[0], atol=1e-5)


def test_others_compute_themselves(tmp_path):
    save(qwen(), tmp_path)
    adapted = {"lora": LoraConfig(r=4, alpha=8)}, {"dtype": "bfloat16"}
    given = [PretrainedPolicyConfig(type="pretrained", path=str(tmp_path), **how) for how in adapted]
    sizes = {"vocab_size": 16, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
    mistral = MistralForCausalLM(MistralConfig(**sizes, num_attention_heads=4, num_key_value_heads=2))
    for policy in (*(build(config, (), key(0)) for config in given), Policy(mistral, None)):
        assert not isinstance(forward_of(policy), LeanForward)
