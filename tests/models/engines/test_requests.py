"""Completions: ends of an answer, and its text."""

from contextlib import closing

import pytest
import torch
from support.chat import chat
from support.policies import qwen

from coevo.configs.rollout.rollout_config import SamplingConfig, TransformersEngineConfig, VllmEngineConfig
from coevo.models.engines.requests import Request, completions_of
from coevo.models.engines.transformers.embedded_engine import TransformersEngine
from coevo.models.engines.vllm.vllm_engine import VllmEngine, completion_body
from coevo.models.policy.language_model import ends_of
from coevo.models.policy.policy import load, save
from coevo.records.draws import key
from coevo.utilities.errors import CoevoError


def first_token(policy, ids):
    with torch.inference_mode():
        return int(policy.model(torch.tensor([ids])).logits[0, -1].argmax())


@pytest.mark.parametrize("saved", [False, True])
def test_every_end_token_of_the_generation_config_ends_an_answer(saved, tmp_path):
    policy, prompt = qwen(), (5, 6, 7)
    extra = first_token(policy, prompt)
    policy.model.generation_config.eos_token_id = [policy.tokenizer.eos_token_id, extra]
    if saved:
        save(policy, tmp_path)
        policy = load(tmp_path)
    assert ends_of(policy) == sorted({policy.tokenizer.eos_token_id, extra})
    engine = TransformersEngine(policy, TransformersEngineConfig(), SamplingConfig(max_new_tokens=6, top_k=1))
    (completion,) = engine.generate([Request(prompt, key(0, "x"), "g")])
    assert completion.token_ids == (extra,)
    assert completion.finished and completion.text == ""


def test_a_server_gets_every_end_token():
    policy = qwen()
    policy.model.generation_config.eos_token_id = [policy.tokenizer.eos_token_id, 9]
    body = completion_body([], SamplingConfig(), ends_of(policy), "free")
    assert body["stop_token_ids"] == sorted({policy.tokenizer.eos_token_id, 9})


@pytest.mark.parametrize("draws", ["keyed", "free"])
def test_a_server_is_asked_for_the_sampling(draws):
    own, other = SamplingConfig(), SamplingConfig(temperature=0.3, top_p=0.9, top_k=7, max_new_tokens=30)
    asked = [Request((5, 6), key(0, "x"), "g")]
    before, after = (completion_body(asked, sampling, [1], draws) for sampling in (own, other))
    changed = {name: value for name, value in after.items() if before[name] != value}
    assert changed == {"temperature": 0.3, "top_p": 0.9, "top_k": 7, "max_tokens": 30}


def test_a_view_of_servers_has_another_sampling(tmp_path):
    save(qwen(), tmp_path / "policy")
    config = VllmEngineConfig(type="vllm", urls=("http://127.0.0.1:9",), max_model_len=64)
    sampling, longer = SamplingConfig(max_new_tokens=5), SamplingConfig(max_new_tokens=30)
    with closing(VllmEngine(tmp_path / "policy", config, sampling, tmp_path / "servers")) as engine:
        view = engine.with_sampling(longer)
        assert (engine.longest_prompt, view.longest_prompt) == (59, 34)
        assert view.replicas is engine.replicas
        with pytest.raises(CoevoError, match="70 tokens, but the policy attends to 64"):
            view.generate([Request(tuple(range(40)), key(0, "x"), "g")])


def test_marks_of_a_tool_call_stay_in_the_text_and_ends_do_not():
    tokenizer = chat()
    ids = tokenizer("<|tool|>{}<|im_end|>")["input_ids"]
    (completion,) = completions_of(tokenizer, [tokenizer.eos_token_id], [[(token, -0.5) for token in ids]])
    assert completion.text == "<|tool|>{}"
    assert completion.finished


def test_texts_of_word_policies_have_neither_padding_nor_unknown_words():
    tokenizer = qwen().tokenizer
    ids = [tokenizer.pad_token_id, *tokenizer("go safe zebra mug")["input_ids"], tokenizer.eos_token_id]
    (completion,) = completions_of(tokenizer, [tokenizer.eos_token_id], [[(token, -0.5) for token in ids]])
    assert completion.text == tokenizer.decode(ids, skip_special_tokens=True) == "go safe mug"
    assert completions_of(chat(), [1], []) == []
