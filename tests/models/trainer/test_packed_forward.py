"""The forward of packed rows equals the plain one, gradients included."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from support.rows import TEMPERATURE, packed_as, plain_logprobs, ragged
from transformers import AutoModelForCausalLM, CohereConfig, GraniteConfig, LlamaConfig, LlamaForCausalLM, MistralConfig

from coevo.models.trainer.packed_forward import PolicyForward
from coevo.models.trainer.packing import pack_rows, pack_trie
from coevo.utilities.errors import CoevoError

SIZES = {
    "vocab_size": 24, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2, "initializer_range": 0.2,
}  # fmt: skip


def llama():
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SIZES)).eval()


def lora():
    model = get_peft_model(llama(), LoraConfig(r=2, target_modules="all-linear"))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.2)
    return model


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


def small(config, **changes):
    torch.manual_seed(0)
    config = config(**SIZES | {"num_key_value_heads": 1, "pad_token_id": 0} | changes)
    return AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()


MODELS = {
    "tied": lambda policy: policy.model,
    "untied": lambda _: llama(),
    "adapters": lambda _: lora(),
    "divided logits": lambda _: small(GraniteConfig, logits_scaling=3.0),
    "scaled logits": lambda _: small(CohereConfig, logit_scale=0.25),
}


@pytest.mark.parametrize(("name", "entropic"), [*((name, True) for name in MODELS), ("tied", False)])
@pytest.mark.parametrize("pack", [pack_trie, pack_rows])
def test_logprobs_entropies_and_gradients_equal_the_plain_forward(policy, name, pack, entropic):
    model, (prompts, completions, groups) = MODELS[name](policy), ragged(number=int(entropic))
    plain, plain_entropy = plain_logprobs(model, prompts, completions)
    packed, entropy = PolicyForward(model, TEMPERATURE, entropic)(packed_as(pack, (prompts, completions, groups)))
    scales = torch.linspace(-1, 1, len(prompts))
    for row, completion in enumerate(completions):
        torch.testing.assert_close(packed[row, : len(completion)], plain[row], atol=1e-5, rtol=0)
        torch.testing.assert_close(entropy[row, : len(completion)], plain_entropy[row], atol=1e-5, rtol=0)

    def loss(logprobs, entropies):
        parts = []
        for row, scale in enumerate(scales):
            width = len(completions[row])
            parts.append(scale * (logprobs[row][:width].sum() + entropic * entropies[row][:width].sum()))
        return sum(parts)

    expected = gradients(model, loss(plain, plain_entropy))
    worked = gradients(model, loss(packed, entropy))
    assert worked.keys() == expected.keys()
    for name, gradient in expected.items():
        rounding = 1e-5 * max(1.0, gradient.abs().max().item())  # an element that cancels has that of the largest
        torch.testing.assert_close(worked[name], gradient, atol=rounding, rtol=1e-4, msg=name)


def assert_plain(logprobs, model, rows):
    for row, plain in enumerate(plain_logprobs(model, *rows[:2])[0]):
        torch.testing.assert_close(logprobs[row, : len(plain)], plain, atol=1e-5, rtol=0)


@pytest.mark.parametrize("pack", [pack_trie, pack_rows])
def test_nothing_shared_at_all(policy, pack):
    rows = [(4,), (5, 6, 7), (8, 9)], [(3, 4, 5), (6,), (7, 8)]
    logprobs, _ = PolicyForward(policy.model, TEMPERATURE)(packed_as(pack, rows))
    assert_plain(logprobs, policy.model, rows)


def test_a_window_shorter_than_the_rows_is_refused_in_a_trie_and_trained_row_by_row():
    model, rows = small(MistralConfig, sliding_window=4), ragged()
    with pytest.raises(
        CoevoError, match=r"attends to 4 tokens, and an update has rows of \d+: set update\.packing=rows"
    ):
        PolicyForward(model, TEMPERATURE)(packed_as(pack_trie, rows))
    logprobs, _ = PolicyForward(model, TEMPERATURE)(packed_as(pack_rows, rows))
    assert_plain(logprobs, small(MistralConfig, sliding_window=4), rows)
    wide = small(MistralConfig, sliding_window=64)
    logprobs, _ = PolicyForward(wide, TEMPERATURE)(packed_as(pack_trie, rows))
    assert_plain(logprobs, wide, rows)


@pytest.mark.parametrize("pack", [pack_trie, pack_rows])
def test_adapters_of_a_half_precision_model_compute_as_their_base_and_learn_in_float32(pack):
    model, seen = lora(), set()
    for name, parameter in model.named_parameters():
        parameter.data = parameter.data.to(torch.float32 if "lora_" in name else torch.bfloat16)
    for name, layer in model.named_modules():
        if name.endswith("lora_B.default"):
            layer.register_forward_hook(lambda _, inputs, output: seen.update({inputs[0].dtype, output.dtype}))
    logprobs, _ = PolicyForward(model, TEMPERATURE)(packed_as(pack, ragged()[:2]))
    found = gradients(model, logprobs.sum())
    assert seen == {torch.bfloat16}
    assert {gradient.dtype for name, gradient in found.items() if "lora_" in name} == {torch.float32}
    exact, _ = PolicyForward(model.float(), TEMPERATURE)(packed_as(pack, ragged()[:2]))
    assert (logprobs - exact).abs().mean() < 0.02
