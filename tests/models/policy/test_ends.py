"""End of an answer and beginning of a prompt: the chat template's, and what the tokenizer says of them."""

import json

import pytest
import torch
from support.policies import SMALL
from support.soak import mostly_soak
from support.templates import source
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from coevo.configs.policy_config import PretrainedPolicyConfig
from coevo.configs.rollout.rollout_config import SamplingConfig, TransformersEngineConfig
from coevo.models.engines.requests import Request
from coevo.models.engines.transformers.embedded_engine import TransformersEngine
from coevo.models.engines.vllm.vllm_engine import completion_body
from coevo.models.policy.ends import deviating_marks, template_end
from coevo.models.policy.language_model import ends_of
from coevo.models.policy.policy import scratch
from coevo.models.policy.tokenizers import TEMPLATE
from coevo.records.draws import key

OTHER = "<|endoftext|>"
CHATML = ("<|im_start|>", "<|im_end|>")
COHERE = ("<|START_OF_TURN_TOKEN|>", "<|END_RESPONSE|>", "<|END_OF_TURN_TOKEN|>")
DEEPSEEK = ("<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>")
GEMMA4 = (("<|turn>", "<turn|>"), "<turn|>")
TEMPLATES = {
    "cohere": (COHERE, "<|END_OF_TURN_TOKEN|>"),
    "cohere2": (COHERE, "<|END_RESPONSE|>"),
    "deepseekv3": (DEEPSEEK, DEEPSEEK[-1]),
    "deepseek_r1_distill": (DEEPSEEK, DEEPSEEK[-1]),
    "gemma4": GEMMA4,
    "gemma4_v5": GEMMA4,
    "diffusion_gemma": GEMMA4,
    "muse_glimmer": (("<|eot|>",), "<|eot|>"),
    "nemotron_3_nano": (CHATML, "<|im_end|>"),
    "nemotron_3_ultra": (CHATML, "<|im_end|>"),
    "lfm2_v2": (CHATML, "<|im_end|>"),
    "qwen2_5_vl": (CHATML, "<|im_end|>"),
    "qwen3_8": (CHATML, "<|im_end|>"),
    "qwen3_vl": (CHATML, "<|im_end|>"),
    "llama3_1": (("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"), "<|eot_id|>"),
    "phi3_5": (("<|user|>", "<|assistant|>", "<|end|>"), "<|end|>"),
    "qwen2_5": (CHATML, "<|im_end|>"),
    "qwen3": (CHATML, "<|im_end|>"),
    "qwen3_instruct_2507": (CHATML, "<|im_end|>"),
    "qwen3_5_nothink": (CHATML, "<|im_end|>"),
    "lfm2": (CHATML, "<|im_end|>"),
    "llama3": (("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"), "<|eot_id|>"),
    "llama3_2": (("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"), "<|eot_id|>"),
    "gemma": (("<start_of_turn>", "<end_of_turn>"), "<end_of_turn>"),
    "gemma3": (("<start_of_turn>", "<end_of_turn>"), "<end_of_turn>"),
    "phi3": (("<|user|>", "<|assistant|>", "<|end|>"), "<|end|>"),
    "glm4moe": (("<|user|>", "<|assistant|>", "<|observation|>"), "<|user|>"),
    "gptoss": (("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>"), "<|end|>"),
}
"""Control tokens of real templates, and the one behind an answer."""
SIMPLE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
BARE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "


def tokenizer(template, marks=CHATML, eos=OTHER, bos=None, adds=False):
    """A byte-level tokenizer with these control tokens; ``adds``: it puts its first token before each text."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({letter: index for index, letter in enumerate(letters)}, []))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    named = dict.fromkeys([OTHER, *marks, eos, *([bos] if bos else [])])
    backend.add_tokens([AddedToken(text, normalized=False, special=True) for text in named])
    made = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=eos, bos_token=bos, chat_template=template)
    if adds:
        from tokenizers.processors import TemplateProcessing

        made.backend_tokenizer.post_processor = TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, made.bos_token_id)]
        )
    return made


def notices(folder, made, **card):
    (folder / "config.json").write_text("{}")
    (folder / "generation_config.json").write_text(json.dumps(card))
    return deviating_marks(PretrainedPolicyConfig(type="pretrained", path=str(folder)), made)


@pytest.mark.full
@pytest.mark.parametrize("name", mostly_soak([*TEMPLATES], "qwen3", "cohere2", "llama3", "gemma3", "gptoss"))
def test_the_end_of_real_templates_is_found_and_named(name, tmp_path):
    marks, end = TEMPLATES[name]
    bos = "<|begin_of_text|>" if name.startswith("llama") else None
    made = tokenizer(source(name), marks, bos=bos)
    assert made.convert_ids_to_tokens(template_end(made)) == end
    (said,) = notices(tmp_path, made, eos_token_id=made.eos_token_id)
    assert f"ends an answer with {end}" in said and f"set eos_token={end}" in said
    assert notices(tmp_path, made, eos_token_id=[made.eos_token_id, template_end(made)]) == []
    assert notices(tmp_path, tokenizer(source(name), marks, eos=end, bos=bos)) == []


CLOSED = {
    "<|im_end|></a>": True, "</a><|im_end|>": True, "</a></b><|im_end|>": True, "<|im_end|></a></b>": True,
    "</a>\n<|im_end|>": False, "</a> <|im_end|>": False, "<|im_end|><|im_end|>": True, "</a></a><|im_end|></b>": True,
    "\n</a><|im_end|>": True, "</a>": False,
}  # fmt: skip
"""Several control tokens behind an answer, and whether the one that the tokenizer names is among the first."""


@pytest.mark.parametrize("closed", CLOSED, ids=ascii)
def test_an_answer_that_is_closed_before_its_turn_is_no_notice(tmp_path, closed):
    made = tokenizer(SIMPLE.replace("<|im_end|>", closed), (*CHATML, "</a>", "</b>"), eos="<|im_end|>")
    assert made.convert_ids_to_tokens(template_end(made)) == ("</a>" if "</a>" in closed[:5] else "<|im_end|>")
    assert (notices(tmp_path, made) == []) == CLOSED[closed]


def test_an_answer_ends_with_the_token_of_the_template_in_both_engines():
    made, prompt = tokenizer(SIMPLE), (5, 6, 7)
    end = made.convert_tokens_to_ids("<|im_end|>")
    policy = scratch(SMALL, made, key(0, "test"))
    assert ends_of(policy) == sorted({made.eos_token_id, end})
    with torch.inference_mode():
        hidden = policy.model.model(torch.tensor([prompt])).last_hidden_state[0, -1]
    policy.model.lm_head = torch.nn.Linear(len(hidden), len(made), bias=False)
    policy.model.lm_head.weight.data.zero_()[end] = hidden.clone()
    engine = TransformersEngine(policy, TransformersEngineConfig(), SamplingConfig(max_new_tokens=6, top_k=1))
    (completion,) = engine.generate([Request(prompt, key(0, "x"), "g")])
    assert (completion.token_ids, completion.finished, completion.text) == ((end,), True, "")
    assert end in completion_body([], SamplingConfig(), ends_of(policy), "free")["stop_token_ids"]


def test_a_template_without_an_end_token_is_a_notice(tmp_path):
    assert template_end(tokenizer(BARE)) is None and template_end(tokenizer(TEMPLATE)) is None
    (said,) = notices(tmp_path, tokenizer(BARE))
    assert "ends an answer without a control token" in said and OTHER in said


@pytest.mark.full
@pytest.mark.parametrize(
    "written, bos, adds, told",
    [
        ("", "<s>", True, "which the tokenizer puts before a text"), ("", "<s>", False, "which the tokenizer has"),
        ("{{ bos_token }}", "<s>", True, ""), ("<s>", "<s>", False, ""), ("", None, False, ""),
        ("", "<|im_end|>", False, ""),
    ],
)  # fmt: skip
def test_a_template_without_the_first_token_of_the_tokenizer_is_a_notice(tmp_path, written, bos, adds, told):
    said = notices(tmp_path, tokenizer(written + SIMPLE, eos="<|im_end|>", bos=bos, adds=adds))
    assert len(said) == bool(told) and all(told in each and "{{ bos_token }}" in each for each in said)
