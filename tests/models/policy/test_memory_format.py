import torch
from support.policies import llama, qwen

from coevo.configs.policy_config import LoraConfig, PretrainedPolicyConfig
from coevo.models.engines.transformers.embedded_engine import lay_out
from coevo.models.policy.policy import build, load, load_weights, save
from coevo.records.draws import key


def linear(policy):
    return {name: part.weight for name, part in policy.model.named_modules() if isinstance(part, torch.nn.Linear)}


def by_input(weight):
    return weight.t().is_contiguous() and not weight.is_contiguous()


def test_matrices_are_laid_out_by_input_with_their_values():
    policy = qwen()
    before = {name: value.clone() for name, value in policy.model.state_dict().items()}
    ids = torch.arange(6, 12)[None]
    expected = policy.model(ids).logits
    lay_out(policy)
    weights = linear(policy)
    # The output layer is the embedding, too.
    assert {name for name, weight in weights.items() if not by_input(weight)} == {"lm_head"}
    assert all(torch.equal(value, before[name]) for name, value in policy.model.state_dict().items())
    assert torch.allclose(policy.model(ids).logits, expected, atol=1e-6)
    untied = llama()
    lay_out(untied)
    assert by_input(untied.model.lm_head.weight)


def test_loaded_weights_come_into_the_same_layout_and_can_be_saved(tmp_path):
    save(qwen(5), tmp_path / "newer")
    policy = qwen(4)
    lay_out(policy)
    load_weights(policy, tmp_path / "newer")
    assert all(by_input(weight) for name, weight in linear(policy).items() if name != "lm_head")
    save(policy, tmp_path / "again")
    expected, again = qwen(5).model.state_dict(), load(tmp_path / "again").model.state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in again.items())


def test_adapters_too_and_bfloat16_stays_as_it_is(tmp_path):
    save(qwen(), tmp_path / "base")
    given = PretrainedPolicyConfig(
        type="pretrained", path=str(tmp_path / "base"), lora=LoraConfig(r=4, alpha=8), dtype="bfloat16"
    )
    policy = build(given, (), key(0))
    lay_out(policy)
    weights = linear(policy)
    assert {weight.dtype for weight in weights.values() if by_input(weight)} == {torch.float32}
    assert all(by_input(weight) for name, weight in weights.items() if "lora_" in name)
