"""Memory by formula: the values that are known elsewhere, and the peaks of small updates on this machine."""

from dataclasses import replace

import pytest
import torch
from support.policies import qwen
from support.rows import packed_as
from torch.profiler import ProfilerActivity, profile

from coevo.configs.load.load import load_recipe
from coevo.configs.policy_config import LoraConfig, PretrainedPolicyConfig, ScratchPolicyConfig
from coevo.configs.rollout.rollout_config import SamplingConfig, TransformersEngineConfig
from coevo.models.capacity.footprint import MemoryUse, Training, activations, cache, generating, peak, training
from coevo.models.capacity.model_shape import shape_of
from coevo.models.engines.requests import Request
from coevo.models.engines.transformers.embedded_engine import TransformersEngine
from coevo.models.policy.policy import build, save
from coevo.models.trainer.packed_forward import PolicyForward
from coevo.models.trainer.packing import pack_trie
from coevo.records.draws import key

EIGHT_B = shape_of(load_recipe("homerules-coevo-rl-qwen3-8b").policy, 0)
GB = 10**9
ROWS, PROMPT, ANSWER, WORDS = 4, 24, 8, 800
TOKENS = ROWS * (PROMPT + ANSWER)


def states(**plan):
    """Bytes of weights, gradients, master copy and moments, by their last words."""
    items = training(Training(EIGHT_B, **{"processes": 1, "tokens": 1, "answers": 1, "reference": False, **plan}))
    return {item.what.partition("policy: ")[2]: item for item in items if item.what.startswith("policy")}


def test_a_policy_in_float32_takes_sixteen_bytes_a_parameter():
    shape = replace(EIGHT_B, bytes=4)
    plain = training(Training(shape, 0, 1, 1, 1, reference=False))
    held = {item.what: item.bytes for item in plain}
    assert held["policy: weights"] + held["policy: gradients"] + held["policy: moments of AdamW"] == 131_051_765_760
    assert held["policy: master copy"] == 0


def test_in_bfloat16_a_stage_shares_twelve_bytes_the_next_one_gradients_and_the_last_one_weights():
    alone, four = states(stage=1), states(stage=1, processes=4)
    twelve = ("master copy", "moments of AdamW")
    assert sum(alone[name].bytes for name in twelve) == 98_288_824_320
    assert sum(four[name].bytes for name in twelve) == 24_572_206_080
    assert four["weights"].bytes == alone["weights"].bytes == 16_381_470_720
    assert four["gradients"].bytes == alone["gradients"].bytes
    two, three = states(stage=2, processes=4), states(stage=3, processes=4)
    assert two["gradients"].bytes == three["gradients"].bytes == 8_190_735_360
    assert (two["weights"].bytes, three["weights"].bytes) == (16_381_470_720, 4_095_367_680)


def test_offload_moves_the_optimizer_out_of_the_device():
    found = states(stage=2, offload=True)
    assert {name for name, item in found.items() if item.offloaded} == set(found) - {"weights"}
    assert states(stage=3, offload=True, offload_weights=True)["weights"].offloaded


def test_a_critic_is_a_second_policy_and_adapters_train_little():
    with_critic = training(Training(EIGHT_B, 1, 1, 1, 1, critic=True))
    assert sum(item.what.startswith("critic") for item in with_critic) == 5
    adapted = replace(EIGHT_B, rank=64, trainable=174_587_904)
    held = {item.what: item.bytes for item in training(Training(adapted, 1, 1, 1, 1))}
    assert held["policy: moments of AdamW"] == 8 * 174_587_904
    assert held["policy: weights"] == 2 * 8_190_735_360 + 4 * 174_587_904
    assert held["reference"] == 4 * 174_587_904


def test_keys_and_values_of_a_token():
    assert cache(EIGHT_B) == 147_456  # 2 x 36 layers x 8 heads x 128 x 2 bytes
    engine = {item.what: item for item in generating(EIGHT_B, rows=8, prompt=100, answer=28)}
    assert engine["engine: keys and values"].bytes == 147_456 * (8 * 128 + 2 * 8 * 100)


def test_the_peak_is_that_of_the_hungriest_phase():
    items = [
        MemoryUse("a", 1),
        MemoryUse("b", 7, "rollout"),
        MemoryUse("c", 2, "update"),
        MemoryUse("d", 4, "backward"),
    ]
    assert peak([*items, MemoryUse("e", 3, "step")]) == 8
    assert peak([*items, MemoryUse("e", 3, "step"), MemoryUse("f", 2, "backward")]) == 9
    assert peak([]) == 0


def test_checkpointing_keeps_a_small_part():
    assert activations(EIGHT_B, True) < activations(EIGHT_B, False) / 8


@pytest.mark.parametrize("kind", ["full", "wide vocabulary", "adapters", "bfloat16", "adapters in bfloat16"])
def test_the_backward_pass_of_a_micro_batch_takes_what_the_formula_says(kind, tmp_path):
    size = {"hidden_size": 32, "layers": 1} if kind == "wide vocabulary" else {"hidden_size": 128, "layers": 6}
    words = 40_000 if kind == "wide vocabulary" else WORDS
    policy, shape = made(kind, size, words, tmp_path)
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(6, words, (ROWS, PROMPT + ANSWER), generator=draw).tolist()
    rows = [tuple(row[:PROMPT]) for row in ids], [tuple(row[PROMPT:]) for row in ids]
    packed = packed_as(pack_trie, rows)
    module = PolicyForward(policy.model, 1.0)
    expected = TOKENS * activations(shape, False) + ROWS * ANSWER * shape.vocabulary * 8
    gradients = shape.trainable * (4 if shape.rank else shape.bytes)
    measured = allocated(lambda: module(packed)[0].sum().backward())
    assert 0.75 * expected < measured < 1.15 * (expected + gradients)


def made(kind, size, words, directory):
    config = ScratchPolicyConfig(heads=4, kv_heads=2, head_dim=size["hidden_size"] // 4, **size)
    config = config.model_copy(update={"intermediate_size": 3 * config.hidden_size})
    policy = build(config, [f"w{number}" for number in range(words)], key(0))
    if kind in ("full", "wide vocabulary"):
        return policy, shape_of(config, len(policy.tokenizer))
    save(policy, directory)
    lora = LoraConfig(r=4, alpha=8) if "adapters" in kind else None
    dtype = "bfloat16" if "bfloat16" in kind else "float32"
    given = PretrainedPolicyConfig(type="pretrained", path=str(directory), lora=lora, dtype=dtype)
    return build(given, (), key(0)), shape_of(given, 0)


@pytest.mark.parametrize(
    ("stage", "number", "offload", "phase"),
    [(1, 2, False, "always"), (1, 4, False, "update"), (2, 2, False, "update"), (1, 2, True, "update")],
)
def test_stage_1_keeps_the_gradients_of_half_precision_between_updates(stage, number, offload, phase):
    plan = Training(replace(EIGHT_B, bytes=number), stage, 1, 1, 1, offload=offload)
    (found,) = (item.phase for item in training(plan) if item.what == "policy: gradients")
    assert found == phase


def allocated(work):
    """Most bytes of tensors that are there at one time, beyond those that were before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as prof:
        work()
    events = [event for event in prof.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = highest = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        highest = max(highest, held)
    return highest


def test_the_engine_holds_what_the_formula_says():
    policy = qwen(hidden_size=64, layers=8, head_dim=32)
    shape = shape_of(ScratchPolicyConfig(hidden_size=64, layers=8, heads=4, kv_heads=2, head_dim=32), 22)
    engine = TransformersEngine(policy, TransformersEngineConfig(), SamplingConfig(max_new_tokens=8))
    prompts = [tuple(6 + (row * column) % 16 for column in range(200)) for row in range(1, 17)]
    requests = [Request(prompt, key(0, row), f"g{row // 4}") for row, prompt in enumerate(prompts)]
    measured = allocated(lambda: engine.generate(requests))
    weights, *passing = generating(shape, 16, 200, 8)
    assert weights.bytes == 4 * shape.parameters
    assert 0.4 * peak(passing) < measured < 1.3 * peak(passing)
