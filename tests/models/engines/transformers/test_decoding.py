import math

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from support.policies import llama, qwen, qwen2
from transformers import DynamicCache, MistralConfig, MistralForCausalLM

from coevo.configs.policy_config import LoraConfig, PretrainedPolicyConfig
from coevo.configs.rollout.rollout_config import SamplingConfig
from coevo.models.engines.transformers.decoding import (
    Columns,
    LeanForward,
    NodeStore,
    Sampler,
    SlotCache,
    forward_of,
    forward_of_model,
)
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import build, load_weights, save
from coevo.records.draws import key, uniforms

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


def states(columns, seed, rows=3):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(rows, 2, columns, 4, generator=rng), torch.randn(rows, 2, columns, 4, generator=rng)


def test_writes_what_a_dynamic_cache_writes():
    ours, theirs = SlotCache(10), DynamicCache()
    for step, columns in enumerate((4, 1, 1)):
        for layer in range(2):
            keys, values = states(columns, 10 * step + layer)
            for mine, other in zip(ours.update(keys, values, layer), theirs.update(keys, values, layer), strict=True):
                assert torch.equal(mine, other)
        assert ours.get_seq_length() == theirs.get_seq_length()


def test_rows_leave_and_come_several_times():
    cache = SlotCache(4)
    keys, values = states(3, 0)
    cache.update(keys, values, 0)
    cache.keep(torch.tensor([0, 2, 2]))
    seen, _ = cache.update(keys[:, :, :1], values[:, :, :1], 0)
    assert torch.equal(seen[:, :, :3], keys[[0, 2, 2]])
    assert torch.equal(seen[:, :, 3:], keys[:, :, :1])


def stored(columns=5, layers=2):
    """A store of so many nodes, and their keys and values layer by layer."""
    cache, store, nodes = SlotCache(columns), NodeStore(), [states(columns, layer, rows=1) for layer in range(layers)]
    for layer, (keys, values) in enumerate(nodes):
        cache.update(keys, values, layer)
    store.append(cache, torch.zeros(columns, dtype=torch.int64), torch.arange(columns))
    return store, nodes


def test_rows_begin_with_the_nodes_asked_for():
    store, nodes = stored()
    cache = store.cache(torch.tensor([[0, 3], [4, 0]]), more=1)
    assert cache.get_seq_length() == 2
    new = states(1, 9, rows=2)
    for layer, held in enumerate(nodes):
        for part, all_nodes, added in zip(cache.update(*new, layer), held, new, strict=True):
            assert torch.equal(part[0, :, :2], all_nodes[0][:, [0, 3]])
            assert torch.equal(part[1, :, :2], all_nodes[0][:, [4, 0]])
            assert torch.equal(part[:, :, 2:], added)


def test_what_rows_add_are_the_next_nodes():
    store, nodes = stored()
    cache, added = store.cache(torch.tensor([[1], [2]]), more=2), states(2, 9, rows=2)
    for layer in range(2):
        cache.update(*added, layer)
    # Of the first row its last column, of the second both, the last one first.
    store.append(cache, torch.tensor([0, 1, 1]), torch.tensor([2, 2, 1]))
    begun = store.cache(torch.tensor([[4, 5, 6, 7]]), more=1)
    for layer, held in enumerate(nodes):
        for part, old, new in zip(begun.update(*states(1, 3, rows=1), layer), held, added, strict=True):
            assert torch.equal(part[0, :, :1], old[0][:, 4:])
            assert torch.equal(part[0, :, 1:4], torch.stack([new[0, :, 1], new[1, :, 1], new[1, :, 0]], dim=1))


def test_kept_nodes_move_together():
    store, nodes = stored()
    store.keep(torch.tensor([1, 4]))
    begun = store.cache(torch.tensor([[0, 1]]), more=1)
    for layer, held in enumerate(nodes):
        for part, old in zip(begun.update(*states(1, 3, rows=1), layer), held, strict=True):
            assert torch.equal(part[0, :, :2], old[0][:, [1, 4]])


def test_an_empty_store_begins_nothing():
    assert NodeStore().cache(torch.zeros(1, 0, dtype=torch.int64), more=3).get_seq_length() == 0


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
@example(105468, {"top_k": 40, "top_p": 0.95})
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
